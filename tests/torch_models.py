"""Networks that the tests of export_torch.py compare with the reference graphs; it knows them by name."""
import torch
import torch.nn.functional as F
from torch import nn


class BasicBlock(nn.Module):
    def __init__(self, given, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(given, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride > 1 or given != width:
            layers = nn.Conv2d(given, width, 1, stride, bias=False), nn.BatchNorm2d(width)
            self.downsample = nn.Sequential(*layers)

    def forward(self, x):
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += x if self.downsample is None else self.downsample(x)
        return self.relu(out)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        given = 64
        for k, width in enumerate((64, 128, 256, 512), 1):
            stride = 1 if k == 1 else 2
            blocks = nn.Sequential(BasicBlock(given, width, stride), BasicBlock(width, width, 1))
            setattr(self, 'layer%d' % k, blocks)
            given = width
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(512, 1000)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class VGG16(nn.Module):
    def __init__(self):
        super().__init__()
        layers, given = [], 3
        for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
            layers += [nn.Conv2d(given, width, 3, padding=1), nn.ReLU(True)] if width else [nn.MaxPool2d(2)]
            given = width or given
        self.features = nn.Sequential(*layers)
        self.avgpool = nn.AdaptiveAvgPool2d(7)
        self.classifier = nn.Sequential(
            nn.Linear(512 * 49, 4096), nn.ReLU(True), nn.Dropout(),
            nn.Linear(4096, 4096), nn.ReLU(True), nn.Dropout(), nn.Linear(4096, 1000))

    def forward(self, x): return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


class InvertedResidual(nn.Module):
    def __init__(self, given, width, stride, expand):
        super().__init__()
        hidden = given * expand
        self.skips = stride == 1 and given == width
        layers = [] if expand == 1 else [self.unit(given, hidden, 1, 1, 1)]
        layers += [self.unit(hidden, hidden, 3, stride, hidden), nn.Conv2d(hidden, width, 1, bias=False),
                   nn.BatchNorm2d(width)]
        self.conv = nn.Sequential(*layers)

    @staticmethod
    def unit(given, width, size, stride, groups):
        return nn.Sequential(nn.Conv2d(given, width, size, stride, size // 2, groups=groups, bias=False),
                             nn.BatchNorm2d(width), nn.ReLU6(inplace=True))

    def forward(self, x): return x + self.conv(x) if self.skips else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self):
        super().__init__()
        layers, given = [InvertedResidual.unit(3, 32, 3, 2, 1)], 32
        for expand, width, count, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                             (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
            for k in range(count):
                layers.append(InvertedResidual(given, width, 1 if k else stride, expand))
                given = width
        self.features = nn.Sequential(*layers, InvertedResidual.unit(320, 1280, 1, 1, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x): return self.classifier(F.adaptive_avg_pool2d(self.features(x), (1, 1)).flatten(1))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (64, 128, 256, 512, 1024)
        self.d = nn.ModuleList(self.block(a, b) for a, b in zip((3,) + widths, widths))
        self.u = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2, bias=False) for w in widths[3::-1])
        self.ub = nn.ModuleList(self.block(2 * w, w) for w in widths[3::-1])
        self.o = nn.Conv2d(64, 1, 1)

    @staticmethod
    def block(given, width):
        layers = []
        for inputs in (given, width):
            layers += [nn.Conv2d(inputs, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
        return nn.Sequential(*layers)

    def forward(self, x):
        kept = []
        for down in self.d:
            x = down(F.max_pool2d(x, 2) if kept else x)
            kept.append(x)
        for up, block, skip in zip(self.u, self.ub, kept[3::-1]): x = block(torch.cat([skip, up(x)], 1))
        return self.o(x)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        widths = (784, 1024, 512, 2048, 256, 1024, 512, 128, 10)
        self.l = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))

    def forward(self, x):
        for layer in self.l[:-1]: x = F.relu(layer(x), inplace=True)
        return self.l[-1](x)


class Block(nn.Module):
    """Pre-norm attention and two dense layers. The scale of the scores is in the weights."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.softmax = nn.Softmax(-1)
        self.proj = nn.Linear(width, width)
        self.ln2 = nn.LayerNorm(width)
        self.fc1 = nn.Linear(width, 4 * width)
        self.gelu = nn.GELU()
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        samples, tokens, width = x.shape
        parts = self.qkv(self.ln1(x)).chunk(3, -1)
        q, k, v = (t.view(samples, tokens, self.heads, -1).transpose(1, 2) for t in parts)
        mixed = self.softmax(q @ k.transpose(-2, -1)) @ v
        x = self.proj(mixed.transpose(1, 2).reshape(samples, tokens, width)) + x
        return self.fc2(self.gelu(self.fc1(self.ln2(x)))) + x


class Encoder(nn.Module):
    def __init__(self, layers, width, heads, words):
        super().__init__()
        self.emb = nn.Embedding(words, width)
        for k in range(layers): setattr(self, 'b%d' % k, Block(width, heads))
        self.layers = layers
        self.lnf = nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, tok):
        x = self.emb(tok)
        for k in range(self.layers): x = getattr(self, 'b%d' % k)(x)
        return self.head(self.lnf(x))


MODELS = {      # name: factory, batch, inputs
    'resnet18': (ResNet18, 64, ['3x224x224']),
    'vgg16': (VGG16, 32, ['3x224x224']),
    'encoder': (lambda: Encoder(2, 256, 4, 1000), 8, ['128:int32']),
    'mobilenet_v2': (MobileNetV2, 64, ['3x224x224']),
    'unet': (UNet, 8, ['3x256x256']),
    'mlp8': (MLP, 256, ['784']),
    'gpt2_small': (lambda: Encoder(12, 768, 12, 50257), 8, ['1024:int32']),
}
