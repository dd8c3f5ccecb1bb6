"""`python -m evidentia` is the command `evidentia`."""

import sys

from evidentia.serving.cli import main

sys.exit(main())
