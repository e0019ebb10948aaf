"""Parameter counts of adapters (LoRA), by the rules of peft."""
