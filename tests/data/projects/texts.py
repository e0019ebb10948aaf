"""Models of texts, as people write them in their own projects."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    def __init__(self, vocab, dim, layers, heads, out):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(77, dim))
        self.enc = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, heads, 4 * dim, batch_first=True, norm_first=True, activation="gelu"),
            layers,
            enable_nested_tensor=False,
        )
        self.proj = nn.Linear(dim, out, bias=False)

    def forward(self, ids):
        h = self.enc(self.emb(ids) + self.pos[: ids.shape[1]])
        return F.normalize(self.proj(h[:, 0]), dim=-1)


class Dual(nn.Module):
    def __init__(self, vocab, dim, layers, heads, out):
        super().__init__()
        self.query, self.doc = Tower(vocab, dim, layers, heads, out), Tower(vocab, dim, layers, heads, out)
        self.scale = nn.Parameter(torch.tensor(2.6))

    def forward(self, query_ids, doc_ids):
        q, d = self.query(query_ids), self.doc(doc_ids)
        return {"logits": self.scale.exp() * q @ d.T, "q": q, "d": d}


def dual(vocab=30000, dim=384, layers=4, heads=6, out=256):
    return Dual(vocab, dim, layers, heads, out).eval()


class Pool(nn.Module):
    def __init__(self, vocab, emb, hidden, classes):
        super().__init__()
        self.emb = nn.Embedding(vocab, emb, padding_idx=0)
        self.rnn = nn.GRU(emb, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.score = nn.Linear(2 * hidden, 1)
        self.out = nn.Linear(2 * hidden, classes)

    def forward(self, ids):
        h, _ = self.rnn(self.emb(ids))
        a = self.score(h).squeeze(-1).masked_fill(ids == 0, float("-inf")).softmax(-1)
        return self.out(torch.einsum("bs,bsh->bh", a, h))


def gru(vocab=8000, emb=128, hidden=256, classes=5):
    return Pool(vocab, emb, hidden, classes).eval()


class RMS(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def rot(x, cos, sin):
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class Attn(nn.Module):
    def __init__(self, dim, heads, kv):
        super().__init__()
        self.h, self.kv, self.d = heads, kv, dim // heads
        self.wq = nn.Linear(dim, dim, bias=False)
        self.wk = nn.Linear(dim, kv * self.d, bias=False)
        self.wv = nn.Linear(dim, kv * self.d, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        q = rot(self.wq(x).view(b, s, self.h, self.d).transpose(1, 2), cos, sin)
        k = rot(self.wk(x).view(b, s, self.kv, self.d).transpose(1, 2), cos, sin)
        v = self.wv(x).view(b, s, self.kv, self.d).transpose(1, 2)
        k, v = [t.repeat_interleave(self.h // self.kv, 1) for t in (k, v)]
        a = (q @ k.transpose(-2, -1)) / math.sqrt(self.d)
        a = a.masked_fill(torch.triu(torch.ones(s, s, dtype=torch.bool), 1), float("-inf")).softmax(-1)
        return self.wo((a @ v).transpose(1, 2).reshape(b, s, -1))


class Blk(nn.Module):
    def __init__(self, dim, heads, kv, ffn):
        super().__init__()
        self.n1, self.n2, self.attn = RMS(dim), RMS(dim), Attn(dim, heads, kv)
        self.w1, self.w2, self.w3 = (
            nn.Linear(dim, ffn, bias=False),
            nn.Linear(ffn, dim, bias=False),
            nn.Linear(dim, ffn, bias=False),
        )

    def forward(self, x, cos, sin):
        x = x + self.attn(self.n1(x), cos, sin)
        h = self.n2(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class LM(nn.Module):
    def __init__(self, vocab, dim, layers, heads, kv, ffn, context):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList([Blk(dim, heads, kv, ffn) for _ in range(layers)])
        self.norm = RMS(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.head.weight = self.tok.weight
        d = dim // heads
        f = 1.0 / 10000 ** (torch.arange(0, d, 2).float() / d)
        t = torch.outer(torch.arange(context).float(), f)
        self.register_buffer("cos", t.cos(), persistent=False)
        self.register_buffer("sin", t.sin(), persistent=False)

    def forward(self, tokens):
        s = tokens.shape[1]
        x = self.tok(tokens)
        for layer in self.layers:
            x = layer(x, self.cos[:s], self.sin[:s])
        return self.head(self.norm(x))


def lm(vocab=32000, dim=512, layers=6, heads=8, kv=2, ffn=1376, context=1024):
    return LM(vocab, dim, layers, heads, kv, ffn, context).eval()


class Out(NamedTuple):
    logits: torch.Tensor
    memory: torch.Tensor


class S2S(nn.Module):
    def __init__(self, vocab, dim, heads, layers, ffn):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.tr = nn.Transformer(dim, heads, layers, layers, ffn, batch_first=True)
        self.gen = nn.Linear(dim, vocab)
        self.dim = dim

    def forward(self, src, tgt):
        m = torch.triu(torch.full((tgt.shape[1], tgt.shape[1]), float("-inf")), 1)
        memory = self.tr.encoder(self.emb(src) * math.sqrt(self.dim))
        return Out(self.gen(self.tr.decoder(self.emb(tgt) * math.sqrt(self.dim), memory, tgt_mask=m)), memory)


def s2s(vocab=8000, dim=256, heads=4, layers=3, ffn=1024):
    return S2S(vocab, dim, heads, layers, ffn).eval()


@dataclass
class GPTConfig:
    block_size: int = 1024
    vocab_size: int = 50304
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.0
    bias: bool = True


class CSA(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head, self.n_embd, self.dropout = config.n_head, config.n_embd, config.dropout

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(
            q, k, v, attn_mask=None, dropout_p=self.dropout if self.training else 0, is_causal=True
        )
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.gelu = nn.GELU()
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.attn = CSA(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, bias=config.bias)
        self.mlp = MLP(config)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.block_size, config.n_embd),
                "drop": nn.Dropout(config.dropout),
                "h": nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                "ln_f": nn.LayerNorm(config.n_embd, bias=config.bias),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        _, t = idx.size()
        assert t <= self.config.block_size
        pos = torch.arange(0, t, dtype=torch.long)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        if targets is not None:
            logits = self.lm_head(x)
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        else:
            logits = self.lm_head(x[:, [-1], :])
            loss = None
        return logits, loss


def gpt(block_size=1024, vocab_size=50304, n_layer=12, n_head=12, n_embd=768, bias=True):
    return GPT(GPTConfig(block_size, vocab_size, n_layer, n_head, n_embd, 0.0, bias)).eval()


class TextCNN(nn.Module):
    def __init__(self, vocab, dim, filters, classes, widths=(3, 4, 5)):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.convs = nn.ModuleList([nn.Conv1d(dim, filters, w) for w in widths])
        self.fc = nn.Linear(filters * len(widths), classes)

    def forward(self, ids):
        x = self.emb(ids).transpose(1, 2)
        return self.fc(torch.cat([F.relu(c(x)).amax(-1) for c in self.convs], 1))


def textcnn(vocab=10000, dim=100, filters=64, classes=2):
    return TextCNN(vocab, dim, filters, classes).eval()
