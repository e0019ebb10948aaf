"""Models of images, as people write them in their own projects."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def modulate(x, shift, scale):
    return x * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1)


class TimestepEmbedder(nn.Module):
    def __init__(self, hidden_size, frequency_size=256):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(frequency_size, hidden_size), nn.SiLU(), nn.Linear(hidden_size, hidden_size))
        self.frequency_size = frequency_size

    def forward(self, t):
        half = self.frequency_size // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
        args = t[:, None].float() * freqs[None]
        emb = torch.cat([torch.cos(args), torch.sin(args)], dim=-1)
        return self.mlp(emb)


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.q_norm = nn.RMSNorm(dim // heads, eps=1e-6)
        self.k_norm = nn.RMSNorm(dim // heads, eps=1e-6)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        q, k = self.q_norm(q), self.k_norm(k)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, dim, heads, mlp_ratio=4.0):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        inner = int(dim * mlp_ratio)
        self.fc1 = nn.Linear(dim, inner)
        self.fc2 = nn.Linear(inner, dim)
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(dim, 6 * dim))

    def forward(self, x, c):
        s1, c1, g1, s2, c2, g2 = self.ada(c).chunk(6, dim=1)
        x = x + g1.unsqueeze(1) * self.attn(modulate(self.norm1(x), s1, c1))
        x = x + g2.unsqueeze(1) * self.fc2(F.gelu(self.fc1(modulate(self.norm2(x), s2, c2)), approximate="tanh"))
        return x


class FinalLayer(nn.Module):
    def __init__(self, dim, patch, out):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False, eps=1e-6)
        self.linear = nn.Linear(dim, patch * patch * out)
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(dim, 2 * dim))

    def forward(self, x, c):
        shift, scale = self.ada(c).chunk(2, dim=1)
        return self.linear(modulate(self.norm(x), shift, scale))


class DiT(nn.Module):
    def __init__(self, size, patch, channels, dim, depth, heads, classes):
        super().__init__()
        self.patch, self.channels = patch, channels
        self.embed = nn.Conv2d(channels, dim, patch, stride=patch)
        self.t = TimestepEmbedder(dim)
        self.y = nn.Embedding(classes + 1, dim)
        self.pos = nn.Parameter(torch.randn(1, (size // patch) ** 2, dim) * 0.02)
        self.blocks = nn.ModuleList([Block(dim, heads) for _ in range(depth)])
        self.final = FinalLayer(dim, patch, 2 * channels)

    def forward(self, x, t, y):
        h, w = x.shape[2] // self.patch, x.shape[3] // self.patch
        x = self.embed(x).flatten(2).transpose(1, 2) + self.pos
        c = self.t(t) + self.y(y)
        for block in self.blocks:
            x = block(x, c)
        x = self.final(x, c)
        x = x.reshape(x.shape[0], h, w, self.patch, self.patch, 2 * self.channels)
        x = torch.einsum("nhwpqc->nchpwq", x)
        return x.reshape(x.shape[0], 2 * self.channels, h * self.patch, w * self.patch)


def dit(size=32, patch=2, channels=4, dim=384, depth=12, heads=6, classes=1000):
    return DiT(size, patch, channels, dim, depth, heads, classes).eval()


class MixBlock(nn.Module):
    def __init__(self, tokens, dim, th, ch):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.tok = nn.Sequential(nn.Linear(tokens, th), nn.GELU(), nn.Linear(th, tokens))
        self.ch = nn.Sequential(nn.Linear(dim, ch), nn.GELU(), nn.Linear(ch, dim))

    def forward(self, x):
        x = x + self.tok(self.n1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.ch(self.n2(x))


class Mixer(nn.Module):
    def __init__(self, size, patch, dim, depth, classes):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, patch, patch)
        n = (size // patch) ** 2
        self.blocks = nn.Sequential(*[MixBlock(n, dim, dim // 2, dim * 4) for _ in range(depth)])
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, image):
        x = self.stem(image).flatten(2).mT
        return self.head(self.norm(self.blocks(x)).mean(1))


def mixer(size=224, patch=16, dim=512, depth=8, classes=1000):
    return Mixer(size, patch, dim, depth, classes).eval()


class Double(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1, bias=False),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.net(x)


class UNet(nn.Module):
    def __init__(self, channels, classes, base):
        super().__init__()
        self.inc = Double(channels, base)
        self.down = nn.ModuleList([Double(base * 2**i, base * 2 ** (i + 1)) for i in range(3)])
        self.up = nn.ModuleList(
            [nn.ConvTranspose2d(base * 2 ** (i + 1), base * 2**i, 2, 2) for i in reversed(range(3))]
        )
        self.dec = nn.ModuleList([Double(base * 2 ** (i + 1), base * 2**i) for i in reversed(range(3))])
        self.outc = nn.Conv2d(base, classes, 1)

    def forward(self, x):
        x = self.inc(x)
        skips = []
        for d in self.down:
            skips.append(x)
            x = d(F.max_pool2d(x, 2))
        for up, dec in zip(self.up, self.dec, strict=True):
            x = dec(torch.cat([skips.pop(), up(x)], 1))
        return self.outc(x)


def unet(channels=3, classes=2, base=64):
    return UNet(channels, classes, base).eval()


class LN2d(nn.Module):
    def __init__(self, c, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(c))
        self.bias = nn.Parameter(torch.zeros(c))
        self.eps = eps

    def forward(self, x):
        u = x.mean(1, keepdim=True)
        s = (x - u).pow(2).mean(1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.eps)
        return self.weight[:, None, None] * x + self.bias[:, None, None]


class CNBlock(nn.Module):
    def __init__(self, dim, scale=1e-6):
        super().__init__()
        self.dwconv = nn.Conv2d(dim, dim, 7, padding=3, groups=dim)
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.pw1 = nn.Linear(dim, 4 * dim)
        self.pw2 = nn.Linear(4 * dim, dim)
        self.gamma = nn.Parameter(scale * torch.ones(dim))

    def forward(self, x):
        y = self.dwconv(x).permute(0, 2, 3, 1)
        y = self.gamma * self.pw2(F.gelu(self.pw1(self.norm(y))))
        return x + y.permute(0, 3, 1, 2)


class CN(nn.Module):
    def __init__(self, classes, dim, depth):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, dim, 4, 4), LN2d(dim))
        self.stage1 = nn.Sequential(*[CNBlock(dim) for _ in range(depth)])
        self.down = nn.Sequential(LN2d(dim), nn.Conv2d(dim, 2 * dim, 2, 2))
        self.stage2 = nn.Sequential(*[CNBlock(2 * dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(2 * dim)
        self.head = nn.Linear(2 * dim, classes)

    def forward(self, image):
        x = self.stage2(self.down(self.stage1(self.stem(image))))
        return self.head(self.norm(x.mean((2, 3))))


def convnext(classes=100, dim=64, depth=3):
    return CN(classes, dim, depth).eval()


class SE(nn.Module):
    def __init__(self, c, r):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(c, c // r), nn.Linear(c // r, c)

    def forward(self, x):
        w = self.fc2(F.relu(self.fc1(F.adaptive_avg_pool2d(x, 1).flatten(1)))).sigmoid()
        return x * w[:, :, None, None]


class Basic(nn.Module):
    def __init__(self, i, o, stride, r):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o)
        self.c2, self.b2 = nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o)
        self.se = SE(o, r)
        self.short = (
            nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))
            if stride != 1 or i != o
            else nn.Identity()
        )

    def forward(self, x):
        y = F.relu(self.b1(self.c1(x)))
        return F.relu(self.se(self.b2(self.c2(y))) + self.short(x))


class SER(nn.Module):
    def __init__(self, classes, width, reduction):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, 1, 1, bias=False)
        self.bn = nn.BatchNorm2d(width)
        self.l1 = nn.Sequential(Basic(width, width, 1, reduction), Basic(width, width, 1, reduction))
        self.l2 = nn.Sequential(Basic(width, 2 * width, 2, reduction), Basic(2 * width, 2 * width, 1, reduction))
        self.fc = nn.Linear(2 * width, classes)

    def forward(self, x):
        x = self.l2(self.l1(F.relu(self.bn(self.stem(x)))))
        return self.fc(F.adaptive_avg_pool2d(x, 1).flatten(1))


def seresnet(classes=10, width=32, reduction=8):
    return SER(classes, width, reduction).eval()


class VQ(nn.Module):
    def __init__(self, channels, dim, codes):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(channels, dim // 2, 4, 2, 1), nn.ReLU(), nn.Conv2d(dim // 2, dim, 4, 2, 1))
        self.codebook = nn.Embedding(codes, dim)
        self.dec = nn.Sequential(
            nn.ConvTranspose2d(dim, dim // 2, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(dim // 2, channels, 4, 2, 1)
        )

    def forward(self, image):
        z = self.enc(image)
        flat = z.permute(0, 2, 3, 1)
        d = flat.pow(2).sum(-1, keepdim=True) - 2 * flat @ self.codebook.weight.T + self.codebook.weight.pow(2).sum(1)
        ids = d.argmin(-1)
        q = self.codebook(ids).permute(0, 3, 1, 2)
        return self.dec(z + (q - z).detach()), ids


def vq(channels=3, dim=64, codes=512):
    return VQ(channels, dim, codes).eval()
