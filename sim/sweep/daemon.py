"""The daemon of pyspark that starts Python workers, of which none prints a traceback because the JVM has ended.

Spark ends a local JVM while workers wait for tasks. A worker that sees its socket closed before it is killed reports
that on the socket, and the report fails.
"""

from socket import socket

from pyspark import daemon

_worker = daemon.worker


def _quiet_worker(sock: socket, authenticated: bool) -> int:
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1  # nobody is left to be told


daemon.worker = _quiet_worker

if __name__ == "__main__":
    daemon.manager()
