"""Models of sounds, sets, graphs and tables, as people write them in their own projects."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class MoE(nn.Module):
    def __init__(self, dim, ffn, experts):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList(
            [nn.ModuleDict({"up": nn.Linear(dim, ffn), "down": nn.Linear(ffn, dim)}) for _ in range(experts)]
        )

    def forward(self, x):
        w = self.gate(x).softmax(-1)
        top, ids = w.topk(2, -1)
        top = top / top.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, e in enumerate(self.experts):
            g = (top * (ids == i)).sum(-1, keepdim=True)
            out = out + g * e["down"](F.silu(e["up"](x)))
        return out


class MoEModel(nn.Module):
    def __init__(self, dim, ffn, experts, layers):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.ModuleDict({"norm": nn.RMSNorm(dim), "moe": MoE(dim, ffn, experts)}) for _ in range(layers)]
        )

    def forward(self, x):
        for layer in self.layers:
            x = x + layer["moe"](layer["norm"](x))
        return x


def moe(dim=256, ffn=512, experts=8, layers=6):
    return MoEModel(dim, ffn, experts, layers).eval()


class Res(nn.Module):
    def __init__(self, c, skip, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.f = nn.Conv1d(c, c, 3, dilation=dilation)
        self.g = nn.Conv1d(c, c, 3, dilation=dilation)
        self.r = nn.Conv1d(c, c, 1)
        self.s = nn.Conv1d(c, skip, 1)

    def forward(self, x):
        p = F.pad(x, (self.pad, 0))
        z = torch.tanh(self.f(p)) * torch.sigmoid(self.g(p))
        return x + self.r(z), self.s(z)


class Wave(nn.Module):
    def __init__(self, channels, skip, layers, classes):
        super().__init__()
        self.inp = nn.Conv1d(1, channels, 1)
        self.blocks = nn.ModuleList([Res(channels, skip, 2**i) for i in range(layers)])
        self.o1, self.o2 = nn.Conv1d(skip, skip, 1), nn.Conv1d(skip, classes, 1)

    def forward(self, audio):
        x = self.inp(audio)
        total = 0
        for b in self.blocks:
            x, s = b(x)
            total = total + s
        return self.o2(F.relu(self.o1(F.relu(total))))


def wavenet(channels=32, skip=64, layers=5, classes=256):
    return Wave(channels, skip, layers, classes).eval()


class Tab(nn.Module):
    def __init__(self, sizes, numeric, dim, layers, heads, classes):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(n, dim) for n in sizes])
        self.num = nn.Linear(numeric, dim)
        self.cls = nn.Parameter(torch.zeros(1, 1, dim))
        self.enc = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(dim, heads, 2 * dim, batch_first=True), layers, enable_nested_tensor=False
        )
        self.out = nn.Linear(dim, classes)

    def forward(self, cats, nums):
        x = torch.stack([e(cats[:, i]) for i, e in enumerate(self.embs)], 1)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x, self.num(nums)[:, None]], 1)
        return self.out(self.enc(x)[:, 0])


def tab(numeric=7, dim=64, layers=2, heads=4, classes=3):
    return Tab([10, 5, 30], numeric, dim, layers, heads, classes).eval()


class MAB(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.h = heads
        self.q, self.k, self.v, self.o = (
            nn.Linear(dim, dim),
            nn.Linear(dim, dim),
            nn.Linear(dim, dim),
            nn.Linear(dim, dim),
        )
        self.ln0, self.ln1 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.ff = nn.Linear(dim, dim)

    def forward(self, x, y):
        B, N, D = x.shape
        q, k, v = [
            m(t).view(t.shape[0], t.shape[1], self.h, D // self.h).transpose(1, 2)
            for m, t in ((self.q, x), (self.k, y), (self.v, y))
        ]
        a = torch.softmax(torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(D), -1)
        o = torch.einsum("bhqk,bhkd->bhqd", a, v).transpose(1, 2).reshape(B, N, D)
        o = self.ln0(x + self.o(o))
        return self.ln1(o + F.relu(self.ff(o)))


class SetT(nn.Module):
    def __init__(self, inputs, dim, heads, inducing, seeds, outputs):
        super().__init__()
        self.inp = nn.Linear(inputs, dim)
        self.I = nn.Parameter(torch.randn(1, inducing, dim))
        self.S = nn.Parameter(torch.randn(1, seeds, dim))
        self.m1, self.m2, self.pool = MAB(dim, heads), MAB(dim, heads), MAB(dim, heads)
        self.out = nn.Linear(dim, outputs)

    def forward(self, x):
        x = self.inp(x)
        h = self.m1(self.I.expand(len(x), -1, -1), x)
        x = self.m2(x, h)
        return self.out(self.pool(self.S.repeat(len(x), 1, 1), x))


def settr(inputs=16, dim=128, heads=4, inducing=32, seeds=4, outputs=10):
    return SetT(inputs, dim, heads, inducing, seeds, outputs).eval()


class GAT(nn.Module):
    def __init__(self, i, o, heads):
        super().__init__()
        self.h, self.o = heads, o
        self.w = nn.Linear(i, heads * o, bias=False)
        self.a1 = nn.Parameter(torch.randn(heads, o))
        self.a2 = nn.Parameter(torch.randn(heads, o))

    def forward(self, x, adj):
        h = self.w(x).unflatten(-1, (self.h, self.o))
        s, t = (h * self.a1).sum(-1), (h * self.a2).sum(-1)
        e = F.leaky_relu(s[:, :, None] + t[:, None], 0.2)
        a = e.masked_fill(~adj[..., None], -1e9).softmax(2)
        return torch.einsum("bijh,bjhd->bihd", a, h).flatten(2)


class Graph(nn.Module):
    def __init__(self, features, hidden, heads, classes):
        super().__init__()
        self.g1, self.g2 = GAT(features, hidden, heads), GAT(hidden * heads, classes, 1)

    def forward(self, x, adj):
        return self.g2(F.elu(self.g1(x, adj)), adj)


def gat(features=32, hidden=8, heads=4, classes=7):
    return Graph(features, hidden, heads, classes).eval()


class Conformer(nn.Module):
    def __init__(self, dim, heads, kernel, ffn):
        super().__init__()
        self.ff1 = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, ffn), nn.SiLU(), nn.Dropout(0.1), nn.Linear(ffn, dim)
        )
        self.norm = nn.LayerNorm(dim)
        self.att = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.cn = nn.LayerNorm(dim)
        self.pw1 = nn.Conv1d(dim, 2 * dim, 1)
        self.dw = nn.Conv1d(dim, dim, kernel, padding=kernel // 2, groups=dim)
        self.bn = nn.BatchNorm1d(dim)
        self.pw2 = nn.Conv1d(dim, dim, 1)
        self.ff2 = nn.Sequential(
            nn.LayerNorm(dim), nn.Linear(dim, ffn), nn.SiLU(), nn.Dropout(0.1), nn.Linear(ffn, dim)
        )
        self.last = nn.LayerNorm(dim)

    def forward(self, x, pad):
        x = x + 0.5 * self.ff1(x)
        y = self.norm(x)
        x = x + self.att(y, y, y, key_padding_mask=pad, need_weights=False)[0]
        y = self.pw2(F.silu(self.bn(self.dw(F.glu(self.pw1(self.cn(x).transpose(1, 2)), 1))))).transpose(1, 2)
        x = x + y
        return self.last(x + 0.5 * self.ff2(x))


class ASR(nn.Module):
    def __init__(self, mels, dim, heads, kernel, ffn, layers, vocab):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv1d(mels, dim, 3, 2, 1), nn.ReLU(), nn.Conv1d(dim, dim, 3, 2, 1), nn.ReLU())
        self.blocks = nn.ModuleList([Conformer(dim, heads, kernel, ffn) for _ in range(layers)])
        self.out = nn.Linear(dim, vocab)

    def forward(self, mel, pad):
        x = self.sub(mel).transpose(1, 2)
        for b in self.blocks:
            x = b(x, pad)
        return self.out(x).log_softmax(-1)


def asr(mels=80, dim=144, heads=4, kernel=31, ffn=576, layers=4, vocab=500):
    return ASR(mels, dim, heads, kernel, ffn, layers, vocab).eval()


class DCN(nn.Module):
    def __init__(self, users, items, dim, cross, hidden):
        super().__init__()
        self.u, self.i = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.cross = nn.ModuleList([nn.Linear(2 * dim, 2 * dim) for _ in range(cross)])
        self.mlp = nn.Sequential(nn.Linear(2 * dim, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.out = nn.Linear(hidden + 2 * dim, 1)

    def forward(self, user, item):
        x0 = torch.cat([self.u(user), self.i(item)], -1)
        x = x0
        for c in self.cross:
            x = x0 * c(x) + x
        return self.out(torch.cat([x, self.mlp(x0)], -1)).squeeze(-1).sigmoid()


def dcn(users=10000, items=5000, dim=32, cross=3, hidden=128):
    return DCN(users, items, dim, cross, hidden).eval()


class Gen(nn.Module):
    def __init__(self, mels, channels):
        super().__init__()
        wn = torch.nn.utils.parametrizations.weight_norm
        self.pre = wn(nn.Conv1d(mels, channels, 7, padding=3))
        self.ups = nn.ModuleList(
            [wn(nn.ConvTranspose1d(channels // 2**i, channels // 2 ** (i + 1), 8, 4, 2)) for i in range(2)]
        )
        self.res = nn.ModuleList(
            [
                nn.ModuleList(
                    [
                        wn(nn.Conv1d(channels // 2 ** (i + 1), channels // 2 ** (i + 1), 3, dilation=d, padding=d))
                        for d in (1, 3)
                    ]
                )
                for i in range(2)
            ]
        )
        self.post = wn(nn.Conv1d(channels // 4, 1, 7, padding=3))

    def forward(self, mel):
        x = self.pre(mel)
        for up, res in zip(self.ups, self.res, strict=True):
            x = up(F.leaky_relu(x, 0.1))
            for c in res:
                x = x + c(F.leaky_relu(x, 0.1))
        return torch.tanh(self.post(F.leaky_relu(x)))


def gen(mels=80, channels=128):
    return Gen(mels, channels).eval()
