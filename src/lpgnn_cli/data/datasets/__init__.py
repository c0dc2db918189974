"""One module for each kind of dataset; importing this package adds all of them."""

from lpgnn_cli.config.registry import import_modules

import_modules(__name__, __path__)
