"""A Spark standalone cluster on loopback: a master and workers, each a process of its own."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from tests.support.parts import free_port
from tests.support.waiting import wait_until
from tristore.local.child import Child, Command

SPARK_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
DEPLOY = "org.apache.spark.deploy"


@contextmanager
def cluster(folder: Path, java: str, workers: int) -> Iterator[str]:
    """The master's URL, once every worker has registered."""
    env = {
        **os.environ,
        "JAVA_HOME": java,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    port = str(free_port())
    url = f"spark://127.0.0.1:{port}"
    master = ["master.Master", "--host", "127.0.0.1", "--port", port, "--webui-port", "0"]
    with ExitStack() as stack:
        log = stack.enter_context(_running(master, folder / "master.log", env))
        wait_until(lambda: "I have been elected leader" in log.read_text(), 60)
        for number in range(workers):
            work = folder / f"worker-{number}"
            worker = ["worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "-c", "1"]
            argv = [*worker, "-m", "512M", "-d", str(work), url]
            stack.enter_context(_running(argv, folder / f"worker-{number}.log", env))
        wait_until(lambda: log.read_text().count("Registering worker") == workers, 60)
        yield url


@contextmanager
def _running(argv: list[str], log: Path, env: dict[str, str]) -> Iterator[Path]:
    log.touch()
    command = [str(SPARK_CLASS), f"{DEPLOY}.{argv[0]}", *argv[1:]]
    child = Child(Command(command, log, env))
    try:
        yield log
    finally:
        child.stop(10)
