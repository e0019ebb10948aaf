"""Models of `transformers`, from small configurations in which no two sizes are simply related."""

TEXT = {"vocab_size": 97, "hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
BERT = {**TEXT, "intermediate_size": 83, "max_position_embeddings": 40, "type_vocab_size": 5, "layer_norm_eps": 1e-6}
GPT2 = {"vocab_size": 97, "n_embd": 48, "n_layer": 3, "n_head": 4, "n_positions": 40, "n_inner": 83}
DISTILBERT = {"vocab_size": 97, "dim": 48, "n_layers": 3, "n_heads": 4, "hidden_dim": 83, "max_position_embeddings": 40}
LLAMA = {**TEXT, "num_key_value_heads": 2, "head_dim": 14, "intermediate_size": 83, "rms_norm_eps": 1e-5}
VIT = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 83}
T5 = {"vocab_size": 97, "d_model": 51, "num_layers": 3, "num_decoder_layers": 5, "num_heads": 7, "d_kv": 10, "d_ff": 83}
BUCKETS = {"relative_attention_num_buckets": 24, "relative_attention_max_distance": 90, "layer_norm_epsilon": 1e-6}

OTHER = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2}
MARIAN = {**OTHER, "decoder_attention_heads": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": 100}
SPECTROGRAM = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
FRAMES = {"max_length": 64, "num_mel_bins": 32, "patch_size": 8, "frequency_stride": 8, "time_stride": 8}
MIXTRAL = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 100,
    "max_position_embeddings": 64,
}
TOWER = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2}
IMAGES = {**TOWER, "patch_size": 4, "image_size": 16}


def config(kind: str, architecture: str, **fields: object) -> tuple[dict[str, object]]:
    return ({"model_type": kind, "architectures": [architecture], **fields},)


SOURCES = {
    "BERT": config("bert", "BertModel", **BERT),
    "DistilBERT": config("distilbert", "DistilBertModel", **DISTILBERT),
    "ALBERT": config("albert", "AlbertModel", **BERT, embedding_size=29),
    "GPT-2": config("gpt2", "GPT2LMHeadModel", **GPT2, layer_norm_epsilon=1e-6),
    "LLaMA": config("llama", "LlamaForCausalLM", **LLAMA, rope_theta=5000.0),
    "ViT": config("vit", "ViTModel", **VIT, image_size=24, patch_size=4, num_channels=3, layer_norm_eps=1e-6),
    "T5": config("t5", "T5ForConditionalGeneration", **T5, **BUCKETS),
    "Marian, with frozen positions": config(
        "marian", "MarianMTModel", **MARIAN, max_position_embeddings=50, pad_token_id=99, decoder_start_token_id=99
    ),
    "Mixtral, with its cache": config("mixtral", "MixtralForCausalLM", **MIXTRAL, num_local_experts=4),
    "spectrograms, with a field that is not followed": config(
        "audio-spectrogram-transformer", "ASTModel", **SPECTROGRAM, **FRAMES, initializer_range=0.02
    ),
    "Mistral 3, with images": config(
        "mistral3",
        "Mistral3ForConditionalGeneration",
        text_config={**MIXTRAL, "model_type": "mistral"},
        vision_config={**IMAGES, "model_type": "pixtral", "head_dim": 8},
    ),
    "SmolVLM, with images": config(
        "smolvlm",
        "SmolVLMForConditionalGeneration",
        text_config={**MIXTRAL, "model_type": "llama", "pad_token_id": 0},
        vision_config=IMAGES,
        scale_factor=2,
        image_token_id=5,
        pad_token_id=0,
    ),
}

SLOW = "."
