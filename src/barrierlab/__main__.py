"""`python -m barrierlab` is the command `barrierlab`."""

from barrierlab.sim.cli.main import main

if __name__ == "__main__":
    main()
