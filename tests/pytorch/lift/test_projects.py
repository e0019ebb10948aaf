"""Models as people write them in their own projects are lifted, with all their arguments as hyperparameters."""

from ast import literal_eval
from pathlib import Path

import pytest
from modules_of_files import verify
from paths import DATA

import archspec
from archspec import testing

pytest.importorskip("torch")
pytestmark = pytest.mark.slow

MODELS = {
    "images.py:dit": (
        "x=real[batch,channels,size,size] t=int[batch] y=int[batch]",
        "size=12 patch=3 channels=2 dim=24 depth=2 heads=3 classes=7",
    ),
    "images.py:mixer": ("image=real[batch,3,size,size]", "size=24 patch=6 dim=20 depth=2 classes=9"),
    "images.py:unet": ("x=real[batch,channels,16,16]", "channels=2 classes=3 base=6"),
    "images.py:convnext": ("image=real[batch,3,32,32]", "classes=7 dim=12 depth=2"),
    "images.py:seresnet": ("x=real[batch,3,16,16]", "classes=4 width=24 reduction=4"),
    "images.py:vq": ("image=real[batch,channels,16,16]", "channels=2 dim=12 codes=30"),
    "texts.py:dual": ("query_ids=int[batch,seq] doc_ids=int[batch,seq]", "vocab=90 dim=24 layers=2 heads=3 out=10"),
    "texts.py:gru": ("ids=int[batch,seq]", "vocab=90 emb=10 hidden=14 classes=3"),
    "texts.py:lm": ("tokens=int[batch,seq]", "vocab=90 dim=48 layers=2 heads=6 kv=3 ffn=40 context=40"),
    "texts.py:s2s": ("src=int[batch,seq] tgt=int[batch,target]", "vocab=90 dim=24 heads=3 layers=2 ffn=50"),
    "texts.py:gpt": ("idx=int[batch,seq]", "block_size=40 vocab_size=90 n_layer=2 n_head=3 n_embd=24 bias=False"),
    "texts.py:textcnn": ("ids=int[batch,seq]", "vocab=90 dim=14 filters=9 classes=4"),
    "others.py:moe": ("x=real[batch,seq,dim]", "dim=12 ffn=20 experts=5 layers=2"),
    "others.py:wavenet": ("audio=real[batch,1,time]", "channels=10 skip=12 classes=20"),
    "others.py:tab": ("cats=int[batch,3] nums=real[batch,numeric]", "numeric=5 dim=24 layers=3 heads=3 classes=4"),
    "others.py:settr": ("x=real[batch,items,inputs]", "inputs=7 dim=24 heads=3 inducing=11 seeds=5 outputs=6"),
    "others.py:gat": (
        "x=real[batch,nodes,features] adj=bool[batch,nodes,nodes]",
        "features=9 hidden=6 heads=3 classes=5",
    ),
    "others.py:asr": (
        "mel=real[batch,mels,64] pad=bool[batch,16]",
        "mels=10 dim=24 heads=3 kernel=5 ffn=30 layers=2 vocab=40",
    ),
    "others.py:dcn": ("user=int[batch] item=int[batch]", "users=50 items=60 dim=7 cross=2 hidden=13"),
    "others.py:gen": ("mel=real[batch,mels,frames]", "mels=10 channels=16"),
}
"""The inputs of each, and the arguments of another module to compare the spec with."""


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", MODELS)
def test_arguments_of_models_are_hyperparameters(name: str, tmp_path: Path) -> None:
    inputs, arguments = [text.split() for text in MODELS[name]]
    values = {name: literal_eval(value) for name, _, value in [text.partition("=") for text in arguments]}
    path = f"{DATA}/projects/{name}"
    result = testing.run("lift", path, *[f"--input={text}" for text in inputs])
    assert not result.status, result.errors
    assert archspec.loads(result.output, **values).hyperparameters == values
    verify(result.output, path, values, tmp_path, is_rounded=name == "texts.py:lm")  # a table in float32
