__all__: list[str]
__version__: str
