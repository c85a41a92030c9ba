"""What a browser would make of a page: its elements, and the text that is read."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of a page with their attributes, the text of scripts and styles, and all other text."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.inside, self.text, self.open = [], [], "", None
        self.feed(source)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.open = [tag, ""]

    def handle_data(self, data):
        if self.open is None:
            self.text += data
        else:
            self.open[1] += data

    def handle_endtag(self, tag):
        if self.open is not None and tag == self.open[0]:
            self.inside.append(tuple(self.open))
            self.open = None

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]
