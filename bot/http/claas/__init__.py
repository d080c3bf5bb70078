"""CLaaS's wire format: batches of feedback, adapters by `lora_id`."""
