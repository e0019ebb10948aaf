"""Adapters of models (LoRA), as peft counts them."""
