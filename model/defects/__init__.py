"""The protocols as the documents word them where that goes wrong: one module each, kept so that it can be seen."""
