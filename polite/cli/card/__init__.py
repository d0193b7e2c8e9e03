"""`polite card`: the key directory and the card of a crawler that signs its requests."""
