"""The pages, a module each; the first route that fits an address answers it."""

from horarium.api.pages.routes import directory, doors, notifications, review, runs, schedule, static

ROUTERS = tuple(module.router for module in (static, doors, directory, schedule, review, runs, notifications))
