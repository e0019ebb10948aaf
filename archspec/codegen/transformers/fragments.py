"""Fragments of the files that `transformers` loads: the parts that no model changes, and values as code."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.codegen.python.layout import WIDTH, double_quoted
from archspec.ir.table import PlainValue

# Names that `transformers` uses itself, which a spec cannot use for the same things.

_MODELS = """
    activation_checkpointing_disable activation_checkpointing_enable active_adapters add_adapter add_model_tags
    adjust_generation_fn all_tied_weights_keys barrier_after_gathered_checkpoint_save base_model base_model_prefix
    can_generate can_record_outputs compute_transition_scores config config_class
    continuous_batching_context_manager delete_adapter dequantize destroy_cached_continuous_batching_manager device
    disable_adapters disable_input_require_grads dtype dummy_inputs enable_adapters enable_input_require_grads
    enable_peft_hotswap ep_plan from_pretrained fsdp_plan fsdp_size gather_sharded_state_dict_for_save generate
    generate_batch generation_config generation_config_class get_adapter_state_dict get_compiled_call
    get_correct_attn_implementation get_correct_experts_implementation get_decoder get_encoder
    get_expanded_tied_weights_keys get_experts_implementation get_init_context get_input_embeddings
    get_memory_footprint get_output_embeddings get_parameter_or_buffer get_position_embeddings
    gradient_checkpointing_disable gradient_checkpointing_enable heal_tokens hf_device_map hf_quantizer
    init_continuous_batching init_parallel_plans init_weights initialize_weights input_modalities
    is_activation_checkpointing is_backend_compatible is_custom_code is_distributed_loading_by_transformers
    is_gradient_checkpointing is_remote_code kernel_config load_adapter load_custom_generate loss_function loss_type
    main_input_name mark_tied_weights_as_initialized maybe_distribute_model model_tags name_or_path
    named_non_persistent_buffers num_parameters output_modalities post_init pp_plan prepare_distribute_model
    prepare_inputs_for_generation push_to_hub register_for_auto_class resize_position_embeddings
    resize_token_embeddings retrieve_modules_from_names save_distributed_checkpoint save_pretrained set_adapter
    set_attn_implementation set_decoder set_encoder set_experts_implementation set_input_embeddings
    set_output_embeddings set_use_kernels should_save_on_this_rank supports_context_parallel
    supports_gradient_checkpointing supports_pp_plan supports_tp_plan tie_weights tp_plan tp_size use_kernels
    warn_if_padding_and_no_attention_mask
"""

RESERVED_MODEL_NAMES = frozenset(_MODELS.split())
"""Attributes that a `PreTrainedModel` that generates texts has in addition to those of a `torch.nn.Module`."""

_CONFIGURATIONS = """
    allow_global_per_layer_attribute_access architectures assistant_confidence_threshold assistant_lookbehind
    attribute_map auto_map bad_words_ids base_config_key base_model_ep_plan base_model_fsdp_plan base_model_pp_plan
    base_model_tp_plan begin_suppress_tokens chunk_size_feed_forward constructor_arguments
    convert_rope_params_to_dict default_config_fields default_rope_type default_theta dict_dtype_to_str
    diversity_penalty do_sample dtype early_stopping encoder_no_repeat_ngram_size encoder_repetition_penalty
    epsilon_cutoff eta_cutoff exponential_decay_length_penalty extra_config_files extra_files forced_bos_token_id
    forced_eos_token_id from_dict from_json_file from_pretrained generation_config get_config_dict get_mtp_config
    get_text_config id2label ignore_keys_at_rope_validation is_custom_code is_encoder_decoder is_heterogeneous
    is_remote_code label2id length_penalty max_length min_length model_type name_or_path nested_rope_parameter_keys
    no_repeat_ngram_size num_assistant_tokens num_assistant_tokens_schedule num_beam_groups num_beams num_labels
    num_return_sequences output_attentions output_hidden_states output_scores per_layer_attributes per_layer_config
    problem_type push_to_hub quantization_config register_for_auto_class remove_invalid_values repetition_penalty
    return_dict return_dict_in_generate rope_scaling save_pretrained self serialize_explicit_per_layer_config
    settings standardize_rope_params sub_configs sub_configs_defaults suppress_tokens target_lookbehind temperature
    tie_word_embeddings to_dict to_diff_dict to_json_file to_json_string top_k top_p torch_dtype
    transformers_version typical_p update update_from_string use_cache use_return_dict validate
    validate_architecture validate_layer_type validate_output_attentions validate_rope validate_token_ids
"""

RESERVED_CONFIG_NAMES = frozenset(_CONFIGURATIONS.split())
"""Attributes of a `PreTrainedConfig`, and settings of text generation, which it does not store."""

_OUTPUTS = """
    cache_params clear copy fromkeys get items keys move_to_end past_key_values pop popitem setdefault to_tuple update
    values
"""

RESERVED_OUTPUT_NAMES = frozenset(_OUTPUTS.split())
"""Methods and properties of a `ModelOutput`."""


PRETRAINED = '''

class Pretrained(PreTrainedModel):
    """What a network inherits; `config` is set before its constructor is called."""

    def __init__(self) -> None:
        super().__init__(self.config)

    def post_init(self) -> None:
        """Note whether the constructor initialized the tensors."""
        self._is_filled = not any(tensor.is_meta for tensor in self._tensors().values())
        super().post_init()

    @torch.no_grad()
    def initialize_weights(self) -> None:
        """Give tensors that no checkpoint filled the values that they have in a new network."""
        if not self._is_filled:
            self._is_filled = True
            missing = {
                name: tensor
                for name, tensor in self._tensors().items()
                if not getattr(tensor, "_is_hf_initialized", False)
            }
            new = type(self)(self.config)._tensors() if missing else {}
            for name, tensor in missing.items():
                tensor.copy_(new[name])

    def _tensors(self) -> dict[str, Tensor]:
        parameters = dict(self.named_parameters(remove_duplicate=False))
        return parameters | dict(self.named_buffers(remove_duplicate=False))'''

GENERATION = '''
    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        **settings: object,
    ) -> dict[str, Tensor]:
        """All words so far: there is no cache."""
        if attention_mask is not None and not attention_mask.all():
            raise ValueError("texts that are continued together differ in length")
        return {"input_ids": input_ids}'''

SWITCH = [
    "        for module in self.modules():",
    "            if type(module) in CHECKPOINTED:",
    "                module.__class__ = CHECKPOINTED[type(module)]",
]


def collection(head: str, items: Sequence[str], tail: str, indent: int) -> list[str]:
    """A list or dictionary in one line, or with a line for each item."""
    margin = "    " * indent
    line = f"{margin}{head}{', '.join(items)}{tail}"
    if len(line) <= WIDTH:
        return [line]
    return [margin + head, *[f"{margin}    {item}," for item in items], margin + tail]


def imported(file: str, what: str) -> list[str]:
    line = f"from .{file} import {what}"
    return [line] if len(line) <= WIDTH else [f"from .{file} import (", f"    {what},", ")"]


def parameter(name: str, value: PlainValue) -> str:
    if isinstance(value, bool | int | float | str):
        annotation = value.__class__.__name__
    else:
        annotation = "int | None" if value is None else "tuple[Any, ...]"
    return f"{name}: {annotation} = {code(value)}"


def argument(key: str, value: PlainValue) -> str:
    return f"tuple(self.{key})" if isinstance(value, Sequence) and not isinstance(value, str) else f"self.{key}"


def code(value: PlainValue) -> str:
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, Sequence):
        items = [code(item) for item in value]
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
    return repr(value)


def quoted(text: str) -> str:
    return double_quoted(repr(text))
