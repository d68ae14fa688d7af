"""Many threads at once, made to take turns in the middle of everything."""

import sys
import threading


def run_threads(count, work, switch=1e-6):
    interval = sys.getswitchinterval()
    sys.setswitchinterval(switch)
    try:
        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
