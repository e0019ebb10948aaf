"""The page of `archspec view`: `page.py` joins the scripts of `scripts/`, `view.py` opens and renews it."""
