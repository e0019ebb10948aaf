"""Models whose sizes follow from their arguments in the ways that people write."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

# A language model as in llama2.c: the width of the feed-forward layers is rounded up to a multiple.


class RMSNorm(nn.Module):
    def __init__(self, dim, eps):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


def rotate(x, cos, sin):
    a, b = x.float().reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(3).type_as(x)


class LlamaAttention(nn.Module):
    def __init__(self, dim, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.wq = nn.Linear(dim, heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(heads * self.head_dim, dim, bias=False)

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        q = self.wq(x).view(b, s, self.heads, self.head_dim)
        k = self.wk(x).view(b, s, self.kv_heads, self.head_dim)
        v = self.wv(x).view(b, s, self.kv_heads, self.head_dim)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k = k.repeat_interleave(self.heads // self.kv_heads, dim=2)
        v = v.repeat_interleave(self.heads // self.kv_heads, dim=2)
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).reshape(b, s, -1))


class LlamaFeedForward(nn.Module):
    def __init__(self, dim, multiple_of):
        super().__init__()
        hidden = int(2 * (4 * dim) / 3)
        hidden = multiple_of * ((hidden + multiple_of - 1) // multiple_of)
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class LlamaBlock(nn.Module):
    def __init__(self, dim, heads, kv_heads, multiple_of):
        super().__init__()
        self.attention = LlamaAttention(dim, heads, kv_heads)
        self.feed_forward = LlamaFeedForward(dim, multiple_of)
        self.attention_norm, self.ffn_norm = RMSNorm(dim, 1e-5), RMSNorm(dim, 1e-5)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.attention_norm(x), cos, sin)
        return x + self.feed_forward(self.ffn_norm(x))


class Llama(nn.Module):
    def __init__(self, vocab_size, dim, n_layers, n_heads, n_kv_heads, multiple_of, tie):
        super().__init__()
        self.head_dim = dim // n_heads
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(LlamaBlock(dim, n_heads, n_kv_heads, multiple_of) for _ in range(n_layers))
        self.norm = RMSNorm(dim, 1e-5)
        self.output = nn.Linear(dim, vocab_size, bias=False)
        if tie:
            self.output.weight = self.tok_embeddings.weight

    def forward(self, tokens):
        steps = torch.arange(0, self.head_dim, 2, device=tokens.device).float()
        angles = torch.outer(torch.arange(tokens.shape[1]).float(), 10000.0 ** -(steps / self.head_dim))
        cos, sin = angles.cos()[:, None], angles.sin()[:, None]
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h, cos, sin)
        return self.output(self.norm(h))


def llama(vocab_size=3200, dim=288, n_layers=6, n_heads=6, n_kv_heads=3, multiple_of=32, tie=True):
    return Llama(vocab_size, dim, n_layers, n_heads, n_kv_heads, multiple_of, tie).eval()


# nanoGPT, with a configuration.


@dataclass
class GPTConfig:
    block_size: int = 1024
    vocab_size: int = 50304
    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    dropout: float = 0.0
    bias: bool = True


class NanoNorm(nn.Module):
    def __init__(self, ndim, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(ndim))
        self.bias = nn.Parameter(torch.zeros(ndim)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class NanoAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.n_head, self.n_embd = config.n_head, config.n_embd

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.n_embd, dim=2)
        k = k.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = q.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = v.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class NanoBlock(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.attn = NanoNorm(config.n_embd, config.bias), NanoAttention(config)
        self.ln_2 = NanoNorm(config.n_embd, config.bias)
        self.c_fc = nn.Linear(config.n_embd, 4 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(4 * config.n_embd, config.n_embd, bias=config.bias)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x))))


class NanoGPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(config.vocab_size, config.n_embd),
                "wpe": nn.Embedding(config.block_size, config.n_embd),
                "h": nn.ModuleList([NanoBlock(config) for _ in range(config.n_layer)]),
                "ln_f": NanoNorm(config.n_embd, config.bias),
            }
        )
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx):
        pos = torch.arange(0, idx.size(1), dtype=torch.long, device=idx.device)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


def nano(block_size=1024, vocab_size=50304, n_layer=12, n_head=12, n_embd=768, bias=True):
    return NanoGPT(GPTConfig(block_size, vocab_size, n_layer, n_head, n_embd, bias=bias)).eval()


# Mamba: the rank of the steps is a sixteenth of the width, rounded up.


class Mixer(nn.Module):
    def __init__(self, d_model, d_state, d_conv, expand):
        super().__init__()
        self.d_inner, self.d_state, self.dt_rank = expand * d_model, d_state, math.ceil(d_model / 16)
        self.in_proj = nn.Linear(d_model, 2 * self.d_inner, bias=False)
        self.conv1d = nn.Conv1d(self.d_inner, self.d_inner, d_conv, groups=self.d_inner, padding=d_conv - 1)
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + 2 * d_state, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1).float()).repeat(self.d_inner, 1))
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def forward(self, x):
        b, s, _ = x.shape
        x, res = self.in_proj(x).split([self.d_inner, self.d_inner], dim=-1)
        x = F.silu(self.conv1d(x.transpose(1, 2))[:, :, :s].transpose(1, 2))
        delta, B, C = self.x_proj(x).split([self.dt_rank, self.d_state, self.d_state], dim=-1)
        delta = F.softplus(self.dt_proj(delta))
        dA = torch.exp(delta[..., None] * -torch.exp(self.A_log))
        dBu = delta[..., None] * B[:, :, None] * x[..., None]
        h, ys = torch.zeros(b, self.d_inner, self.d_state), []
        for i in range(s):
            h = dA[:, i] * h + dBu[:, i]
            ys.append((h * C[:, i, None]).sum(-1))
        y = torch.stack(ys, 1) + x * self.D
        return self.out_proj(y * F.silu(res))


class Mamba(nn.Module):
    def __init__(self, vocab_size, d_model, n_layer, d_state, d_conv, expand):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.mixers = nn.ModuleList([Mixer(d_model, d_state, d_conv, expand) for _ in range(n_layer)])
        self.norms = nn.ModuleList([RMSNorm(d_model, 1e-5) for _ in range(n_layer)])
        self.norm_f = RMSNorm(d_model, 1e-5)

    def forward(self, ids):
        x = self.embedding(ids)
        for norm, mixer in zip(self.norms, self.mixers, strict=False):
            x = x + mixer(norm(x))
        return self.norm_f(x) @ self.embedding.weight.T


def mamba(vocab_size=500, d_model=64, n_layer=2, d_state=16, d_conv=4, expand=2):
    return Mamba(vocab_size, d_model, n_layer, d_state, d_conv, expand).eval()


# A U-Net: each level is twice as wide, with at least 8 groups.


class Res(nn.Module):
    def __init__(self, inputs, outputs, steps):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(min(8, inputs), inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(min(8, outputs), outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(steps, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Unet(nn.Module):
    def __init__(self, channels, base, levels, steps):
        super().__init__()
        widths = [base * 2**i for i in range(levels)]
        self.time = nn.Sequential(nn.Linear(1, steps), nn.SiLU(), nn.Linear(steps, steps))
        self.stem = nn.Conv2d(channels, base, 3, padding=1)
        self.downs = nn.ModuleList([Res(a, b, steps) for a, b in zip([base, *widths[:-1]], widths, strict=False)])
        self.mid = Res(widths[-1], widths[-1], steps)
        self.ups = nn.ModuleList(
            [Res(2 * b, a, steps) for a, b in zip([base, *widths[:-1]], widths, strict=False)][::-1]
        )
        self.out = nn.Conv2d(base, channels, 3, padding=1)

    def forward(self, x, t):
        t = self.time(t[:, None])
        x, skips = self.stem(x), []
        for down in self.downs:
            x = down(x, t)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.mid(x, t)
        for up in self.ups:
            x = F.interpolate(x, scale_factor=2)
            x = up(torch.cat([x, skips.pop()], 1), t)
        return self.out(x)


def unet(channels=3, base=32, levels=3, steps=64):
    return Unet(channels, base, levels, steps).eval()


# A ResNet: the numbers of blocks are a list.


class Basic(nn.Module):
    def __init__(self, inputs, planes, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, planes, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != planes:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, planes, 1, stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.shortcut(x))


class ResNet(nn.Module):
    def __init__(self, blocks, width, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        layers, inputs = [], width
        for i, count in enumerate(blocks):
            planes = width * 2**i
            for j in range(count):
                layers.append(Basic(inputs, planes, 2 if i and not j else 1))
                inputs = planes
        self.layers = nn.Sequential(*layers)
        self.linear = nn.Linear(inputs, classes)

    def forward(self, x):
        x = self.layers(F.relu(self.bn1(self.conv1(x))))
        return self.linear(F.adaptive_avg_pool2d(x, 1).flatten(1))


def resnet(width=16, classes=10, blocks=(2, 2, 2)):
    return ResNet(blocks, width, classes).eval()


# A network of sparse experts, a bottleneck with a least width, and a projection as wide as the wider input.


class Experts(nn.Module):
    def __init__(self, dim, ffn, experts, top_k):
        super().__init__()
        self.top_k = top_k
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(
            [nn.Sequential(nn.Linear(dim, ffn), nn.GELU(), nn.Linear(ffn, dim)) for _ in range(experts)]
        )

    def forward(self, x):
        shares, chosen = self.gate(x).softmax(-1).topk(self.top_k, -1)
        shares = shares / shares.sum(-1, keepdim=True)
        y = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            y = y + expert(x) * (shares * (chosen == i)).sum(-1, keepdim=True)
        return y


class Sparse(nn.Module):
    def __init__(self, dim, ffn, experts, top_k, depth):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(dim) for _ in range(depth)])
        self.layers = nn.ModuleList([Experts(dim, ffn, experts, top_k) for _ in range(depth)])

    def forward(self, x):
        for norm, layer in zip(self.norms, self.layers, strict=False):
            x = x + layer(norm(x))
        return x


def sparse(dim=64, ffn=256, experts=4, top_k=2, depth=2):
    return Sparse(dim, ffn, experts, top_k, depth).eval()


class Squeezed(nn.Module):
    def __init__(self, width, reduction, classes):
        super().__init__()
        narrow = max(width // reduction, 8)
        self.stem = nn.Conv2d(3, width, 3, padding=1)
        self.down, self.up = nn.Conv2d(width, narrow, 1), nn.Conv2d(narrow, width, 1)
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = x * torch.sigmoid(self.up(F.relu(self.down(x.mean((2, 3), keepdim=True)))))
        return self.head(x.mean((2, 3)))


def squeezed(width=128, reduction=4, classes=10):
    return Squeezed(width, reduction, classes).eval()


class Pair(nn.Module):
    def __init__(self, text, image):
        super().__init__()
        inner = max(text, image)
        self.text, self.image = nn.Linear(text, inner), nn.Linear(image, inner)
        self.narrow = nn.Linear(inner, min(text, image))

    def forward(self, x, y):
        return self.narrow(torch.tanh(self.text(x) * self.image(y)))


def pair(text=96, image=64):
    return Pair(text, image).eval()


# A gated feed-forward layer whose width is 8 / 3, to a multiple of 8.


class Gated(nn.Module):
    def __init__(self, dim):
        super().__init__()
        inner = (int(8 * dim / 3) + 7) // 8 * 8
        self.both, self.out = nn.Linear(dim, 2 * inner), nn.Linear(inner, dim)

    def forward(self, x):
        a, b = self.both(x).chunk(2, -1)
        return self.out(F.silu(a) * b)


class GatedStack(nn.Module):
    def __init__(self, dim, depth):
        super().__init__()
        self.layers = nn.Sequential(*[Gated(dim) for _ in range(depth)])

    def forward(self, x):
        return self.layers(x)


def gated(dim=64, depth=3):
    return GatedStack(dim, depth).eval()


# BERT as transformers has it, and a stack of channels from a list.


def bert(vocab=1000, hidden=64, layers=3, heads=4, inner=256, positions=128):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
    )
    return BertModel(config).eval()


def temporal(inputs=8, channels=(16, 32, 48), kernel=3):
    parts = []
    for i, width in enumerate(channels):
        parts += [nn.Conv1d(inputs, width, kernel, padding="same", dilation=2**i), nn.ReLU()]
        inputs = width
    return nn.Sequential(*parts).eval()


# A vision transformer with options.


class VitBlock(nn.Module):
    def __init__(self, dim, heads, ratio, qkv_bias, qk_norm):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.q_norm = nn.LayerNorm(dim // heads) if qk_norm else nn.Identity()
        self.k_norm = nn.LayerNorm(dim // heads) if qk_norm else nn.Identity()
        self.proj = nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, int(dim * ratio)), nn.Linear(int(dim * ratio), dim)

    def forward(self, x):
        B, N, C = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(B, N, 3, self.heads, C // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(self.q_norm(q), self.k_norm(k), v)
        x = x + self.proj(y.transpose(1, 2).reshape(B, N, C))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Vit(nn.Module):
    def __init__(self, size, patch, dim, depth, heads, ratio, classes, qkv_bias, qk_norm):
        super().__init__()
        self.patches = nn.Conv2d(3, dim, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, dim))
        self.blocks = nn.ModuleList([VitBlock(dim, heads, ratio, qkv_bias, qk_norm) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def vit(size=224, patch=16, dim=192, depth=12, heads=3, ratio=4.0, classes=1000, qkv_bias=True, qk_norm=False):
    return Vit(size, patch, dim, depth, heads, ratio, classes, qkv_bias, qk_norm).eval()


class Numbered(nn.Module):
    """One list of all layers: the numbers of the last ones follow the depth. The input has a capital letter."""

    def __init__(self, vocab, dim, depth):
        super().__init__()
        blocks = [SparseNorm(dim) for _ in range(depth)]
        self.net = nn.Sequential(nn.Embedding(vocab, dim), *blocks, Scale(dim), nn.Linear(dim, vocab, bias=False))
        self.net[-1].weight = self.net[0].weight

    def forward(self, Ids):
        return self.net(Ids)


class SparseNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.fc = nn.LayerNorm(dim), nn.Linear(dim, dim)

    def forward(self, x):
        return x + F.gelu(self.fc(self.norm(x)))


class Scale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * self.gamma


def numbered(vocab=60, dim=16, depth=2):
    return Numbered(vocab, dim, depth)


class Dilated(nn.Module):
    def __init__(self, before, channels, kernel, dilation):
        super().__init__()
        self.padding = (kernel - 1) * dilation
        self.conv1 = nn.Conv1d(before, channels, kernel, padding=self.padding, dilation=dilation)
        self.conv2 = nn.Conv1d(channels, channels, kernel, padding=self.padding, dilation=dilation)
        self.skip = nn.Conv1d(before, channels, 1) if before != channels else None

    def forward(self, x):
        y = F.relu(self.conv1(x)[:, :, : -self.padding])
        y = F.relu(self.conv2(y)[:, :, : -self.padding])
        return F.relu(y + (x if self.skip is None else self.skip(x)))


class Temporal(nn.Module):
    """Dilations, and the paddings for them, double from layer to layer."""

    def __init__(self, features, channels, levels, kernel, classes):
        super().__init__()
        befores = [features, *[channels] * (levels - 1)]
        self.net = nn.Sequential(*[Dilated(before, channels, kernel, 2**i) for i, before in enumerate(befores)])
        self.out = nn.Linear(channels, classes)

    def forward(self, x):
        return self.out(self.net(x.transpose(1, 2)).transpose(1, 2))


def dilated(features=4, channels=16, levels=3, kernel=3, classes=5):
    return Temporal(features, channels, levels, kernel, classes)


class WithShortcut(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels)
        self.shortcut = nn.Sequential()
        if stride != 1 or before != channels:
            self.shortcut = nn.Sequential(nn.Conv2d(before, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class OfCifar(nn.Module):
    """Three stages of as many blocks in one list."""

    def __init__(self, blocks, width, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        before, layers = width, []
        for stage in range(3):
            for i in range(blocks):
                layers.append(WithShortcut(before, width * 2**stage, 2 if stage and not i else 1))
                before = width * 2**stage
        self.layers = nn.Sequential(*layers)
        self.fc = nn.Linear(before, classes)

    def forward(self, x):
        x = self.layers(F.relu(self.bn1(self.conv1(x))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def of_cifar(blocks=2, width=16, classes=10):
    return OfCifar(blocks, width, classes)


class Stages(nn.Module):
    """Stages of blocks, each with a width and a depth of its own."""

    def __init__(self, depths, widths, classes):
        super().__init__()
        befores = [3, *widths[:-1]]
        self.downs = nn.ModuleList([nn.Conv2d(a, b, 2, 2) for a, b in zip(befores, widths, strict=True)])
        pairs = zip(depths, widths, strict=True)
        self.stages = nn.ModuleList([nn.Sequential(*[Residual(width) for _ in range(n)]) for n, width in pairs])
        self.head = nn.Linear(widths[-1], classes)

    def forward(self, x):
        for down, stage in zip(self.downs, self.stages, strict=True):
            x = stage(down(x))
        return self.head(x.mean([-2, -1]))


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(width, width, 3, padding=1, groups=width), nn.BatchNorm2d(width)
        self.up, self.down = nn.Conv2d(width, 4 * width, 1), nn.Conv2d(4 * width, width, 1)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(self.conv(x)))))


def stages(depths=(2, 2, 3, 2), widths=(8, 16, 24, 40), classes=10):
    return Stages(depths, widths, classes)
