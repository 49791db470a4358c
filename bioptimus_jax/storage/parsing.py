"""How XML is parsed, wherever it comes from: nothing outside a file is loaded, and no entity is expanded."""

# Comments are dropped while parsing, so that the text around them is one piece. Limits on depth and on the size
# of one text stay: no record comes near them.
PARSING = dict(
    load_dtd=False,
    no_network=True,
    resolve_entities=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)
