"""The pages: what people look at and act on, rendered here over the control layer, under `/ui/`.

A page is three things. A route in `routes/`, on a router from `routing.page_router()`, that takes a `Visited` (somebody who
is signed in and may see the environment in the path) or a `Submitted` (the same, with the fields of a form whose token was
checked). What it asks: `await visit.ask(FUNCTION, …)` for a read of the control layer and `await visit.change(FUNCTION, …)`
for a change, the same functions that the API calls. And a template in `templates/` that extends `frame.html`, by
`visit.render(NAME, …)`. The router is named in `routers.py`.

Templates use the filters of `words` and `moments` and the macros of `parts.html`. Every link is made by `visit.at(…)`, every
form begins with `parts.form_token(visit)`. Nothing is written inline, neither script nor style: the content policy forbids it.
"""
