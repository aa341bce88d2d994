"""A planning child that sleeps and plans nothing."""

import time

if __name__ == '__main__':
    time.sleep(60)
