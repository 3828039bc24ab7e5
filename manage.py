#!/usr/bin/env python3
from __future__ import annotations

import os
import sys


def main() -> None:
    """Run one of the product's commands."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "obversa_site.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
