"""The controller, which takes workers for gone much sooner: for tests in which those that are there poll all the time."""

from datetime import timedelta

from starter import controller, deployments
from worker.exit import run
from worker.logs import configure
from worker.settings import load

if __name__ == "__main__":
    deployments.POLLED_WITHIN = timedelta(seconds=10)
    configure()
    run(controller.control(load()))
