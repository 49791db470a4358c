"""The demo's generated world: general text, biomedical abstracts and NER sets from one small grammar."""
