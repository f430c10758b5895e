"""The one exception users meet: a sentence that says what is wrong and what to do."""


class UserError(Exception):
    """Bad input or a broken surrounding: the CLI prints the sentence and exits with code 2."""
