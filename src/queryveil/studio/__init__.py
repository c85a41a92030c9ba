"""The reviewing app: a local web app for the person who signs a release, and for one who audits it.

It runs on this machine, shows itself to the browser of its owner alone, and fetches and sends nothing.
"""

from queryveil.studio.serving import Address, check_packages, serve

__all__ = ["Address", "check_packages", "serve"]
