#!/usr/bin/env python3
"""Write a PyTorch module as a .tlg graph for tl_read_graph: nodes, bytes, costs, what each backward reads.

    export_torch.py --model resnet18 --batch 64 -o resnet18.tlg
    export_torch.py --model torchvision.models:resnet50 --batch 32 --input 3x224x224 --cost roofline
    export_torch.py --model my_net.py:make_net --batch 8 --input 128:int64 --input 128:int64

or, in a program:

    from export_torch import export
    export(model, (torch.empty(8, 3, 64, 64),)).write('net.tlg')

The module is traced by torch.fx and runs without data: its forward is called once on tensors of the meta
device, so that shapes are plain numbers, no weight is touched, and a network larger than the machine can be
exported. What decides on values of tensors cannot be traced. Serves PyTorch 1.13 (Debian 12) to 2.15.

  views     (view, permute, chunk, detach, ...) are no nodes: they are found by the storage that they share.
            reshape, flatten and contiguous count as views where they copy, too, since a kernel can read with
            strides; --copies node makes them nodes then
  in place  ReLU and other activations whose backward reads their output are folded into the node above
            ("bn+relu") where nothing read the overwritten tensor before; any other change in place is a node
            with a buffer of its own
  dropout   is a node whose backward reads nothing: its mask is made again from the seed
  needs     what the backward has to read, by the mathematics of the op: nothing for sums, the output for ReLU
            and softmax, the input for convolutions; a frozen weight does not need the input. PyTorch keeps more
            or less than that (positions of a max_pool, the input of gather). Where that is more than 1 %, the
            second line of the file says so; --needs autograd writes what PyTorch keeps, asked op by op
  gradient  grad=no where autograd has none, or where none arrives from the outputs. Graph inputs have none
  attention nn.MultiheadAttention without weights is one fused op from PyTorch 2.0 on, as there
  autocast  is refused: its types are not followed
  custom    a torch.autograd.Function is one op that is not known, see --unknown; its backward reads what it
            saves. torch.utils.checkpoint is looked into: what is kept is for the planner to decide
  costs     convolution, linear and matrix products: 2 per multiply-add, and the bias; pools: window x outputs;
            all else 1 per element. Backward: twice that with parameters and for products, else once.
            roofline: the larger of that and 24 x bytes moved (about 10 TFLOP/s against 420 GB/s)
  loss      a node of its own behind the output where the module computes none: one float a sample

Weights, their gradients and constants (also tensors that forward makes from nothing) are no part of a plan and
are not counted; --params adds the weights as param=. Or the plan owns them, with --optimizer: parameters that the
same nodes read become a state, which its update changes; frozen ones and running statistics become states, too.
Weights of linear layers, convolutions and embeddings have wrows=, a row for each output or entry with its bias, by
which kernels may make their gradient (tl_plan --pieces); what its node has or shares beside them has none.
"""
import argparse, contextlib, copy, importlib, importlib.util, inspect, math, operator, os, sys, types

try:
    import torch
    from torch import fx, nn
except ImportError:
    sys.exit('export_torch: PyTorch is not installed (Debian: python3-torch)')

FLOP_PER_BYTE = 24      # of the roofline
HERE = os.path.dirname(os.path.abspath(__file__))
OLDEST = 1, 13
SERVED = '1.13 to 2.15'     # tried with both


class ExportError(Exception):
    """One sentence that names the node."""


# -- the graph --

class Node:
    """One line of the file. inputs: [(node, output number)], each once; reads: those that backward reads."""

    def __init__(self, name, op, out, inputs=()):
        self.name, self.op, self.out, self.inputs = name, op, out, list(inputs)
        self.reads, self.reads_out = set(), set()
        self.flops = self.backward_flops = self.bytes = self.saved = self.param = self.reader_count = 0
        self.parametric = self.grad = self.keep = False
        self.weights, self.statistics = [], []      # parameters; buffers that its forward writes
        self.rowed, self.param_rows = [], 0         # weights with a row for each output; rows of those in param
        self.held = None        # (reads, reads_out, saved) of PyTorch's autograd; None: as here
        self.id = -1

    def costs(self, roofline):
        if not roofline: return self.flops, self.backward_flops
        moved = FLOP_PER_BYTE * self.bytes
        moved_back = moved * 2 if self.parametric else moved * 3 // 2
        return max(self.flops, moved), max(self.backward_flops, moved_back)

    def needs(self):
        if not self.grad: return 'none'
        read = [k for k, tensor in enumerate(self.inputs) if tensor in self.reads]
        words = ['in'] if read and len(read) == len(self.inputs) else ['in%d' % k for k in read]
        made = sorted(self.reads_out)
        words += ['out'] if len(made) == len(self.out) else ['out%d' % k for k in made]
        return ','.join(words) or 'none'

    def line(self, roofline):
        forward, backward = self.costs(roofline)
        inputs = ','.join('%d.%d' % (n.id, k) if k else str(n.id) for n, k in self.inputs) or '-'
        text = 'node %d %s %s fwd=%d bwd=%d out=%s needs=%s in=%s' % (
            self.id, self.name, self.op, forward, backward if self.grad else 0, ','.join(map(str, self.out)),
            self.needs(), inputs)
        if self.saved and self.grad: text += ' saved=%d' % self.saved
        if self.param: text += ' param=%d' % self.param + (' wrows=%d' % self.param_rows if self.param_rows else '')
        if not self.grad and self.op != 'input': text += ' grad=no'
        return text + (' keep' if self.keep else '')


OPTIMIZERS = {'sgd': (0, 2), 'momentum': (1, 4), 'adamw': (2, 14)}    # numbers kept of a weight, FLOP of its update


class State:
    """Weights that the graph owns, a line of the file: kind is an optimizer, frozen or stat."""

    op, flops, backward_flops = 'state', 0, 0

    def __init__(self, name, kind, tensors, rows):
        self.name, self.kind, self.rows, self.id = name, kind, rows, -1
        self.count, self.bytes = sum(t.numel() for t in tensors), sum(map(size_of, tensors))
        self.grad = kind in OPTIMIZERS

    def line(self, roofline):
        if not self.grad: return 'state %d %s %s w=%d %s' % (self.id, self.name, self.kind, self.bytes, self.kind)
        moments, flops = OPTIMIZERS[self.kind]
        cost = flops * self.count
        if roofline: cost = max(cost, FLOP_PER_BYTE * self.bytes * (3 + 2 * moments))
        kept = ' m=' + ','.join([str(self.bytes)] * moments) if moments else ''
        rows = ' wrows=%d' % self.rows if self.rows else ''
        return 'state %d %s %s w=%d%s upd=%d%s' % (self.id, self.name, self.kind, self.bytes, kept, cost, rows)


class Graph:
    """nodes in the order of execution; str() is the .tlg text."""

    def __init__(self, title, nodes, roofline, note=''):
        self.title, self.nodes, self.roofline, self.note = title, nodes, roofline, note

    def __str__(self):
        costs = 'FLOP, or %d x bytes moved where that is more' % FLOP_PER_BYTE if self.roofline else 'FLOP'
        head = ['tlg 2', '# %s; costs in %s%s' % (self.title, costs, self.note)]
        lines = [node.line(self.roofline) for node in self.nodes]
        return '\n'.join(head + lines + ['end %d' % len(lines)]) + '\n'

    def write(self, path):
        with open(path, 'w', encoding='ascii', errors='replace') as file: file.write(str(self))


# -- what is known of each op --

class Op:
    """needs: of its backward, see read_tensors; cost: see COSTS; twice: backward costs twice the forward."""

    def __init__(self, label, needs, cost='element', twice=False):
        self.label, self.needs, self.cost, self.twice = label, needs, cost, twice


OPS = {}


def define(names, needs, label=None, **more):
    for name in names.split(): OPS[name] = Op(label or name, needs, **more)


for d in '123':
    define('conv%sd' % d, 'operands', cost='conv', twice=True)
    define('conv_transpose%sd' % d, 'operands', 'convt%sd' % d, cost='conv_transpose', twice=True)
    define('max_pool%sd max_pool%sd_with_indices' % (d, d), 'in', 'maxpool', cost='pool')
    define('avg_pool%sd' % d, 'none', 'avgpool', cost='pool')
    define('adaptive_avg_pool%sd' % d, 'none', 'gavgpool', cost='adaptive')
    define('adaptive_max_pool%sd adaptive_max_pool%sd_with_indices' % (d, d), 'in', 'gmaxpool', cost='adaptive')
define('linear', 'operands', cost='linear', twice=True)
define('matmul bmm mm mv dot baddbmm addmm addbmm', 'operands', 'bmm', cost='matmul', twice=True)
define('einsum', 'operands', 'bmm', cost='einsum', twice=True)
define('scaled_dot_product_attention', 'in,out', 'attention', cost='attention', twice=True)
define('batch_norm', 'in', 'bn', twice=True)
define('layer_norm', 'in', 'layernorm', twice=True)
define('group_norm instance_norm rms_norm local_response_norm prelu', 'in', twice=True)
define('embedding embedding_bag', 'in', 'embedding', cost='embedding', twice=True)
define('softmax log_softmax softmin', 'out', 'softmax')
# Their derivative is a function of what they gave.
define('relu relu6', 'out', 'relu')
define('leaky_relu elu selu celu sigmoid tanh hardtanh exp expm1 sqrt rsqrt reciprocal', 'out')
define('gelu silu mish softplus softsign logsigmoid hardswish hardsigmoid hardshrink softshrink tanhshrink '
       'rrelu glu threshold abs log log2 log10 log1p sin cos tan atan sinh cosh erf square clamp maximum '
       'minimum atan2 addcmul addcdiv grid_sample lerp', 'in')
define('normalize cumprod', 'in,out')
define('dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout feature_dropout '
       'stochastic_depth drop_path', 'none', 'dropout')
define('add sub rsub neg pos cumsum pad roll flip repeat repeat_interleave tile pixel_shuffle pixel_unshuffle '
       'channel_shuffle unfold fold tril triu diag diag_embed stack', 'none')
define('cat', 'none', 'concat')
define('interpolate upsample', 'none', 'upsample')
define('clone contiguous reshape reshape_as flatten view expand to float double half bfloat16 type type_as '
       'copy split_copy split_with_sizes_copy unbind_copy', 'none', 'copy')
# What is read beside the data: indices, masks, conditions.
define('where masked_fill masked_scatter index_select index_add index_copy index_fill index_put gather scatter '
       'scatter_add take_along_dim getitem setitem', 'index')
define('mul', 'operands')
define('div', 'quotient')
define('pow', 'power')
define('sum mean nansum', 'none', cost='input')
define('norm std var var_mean std_mean cosine_similarity', 'in', cost='input')
define('prod logsumexp amax amin', 'in,out', cost='input')
define('max min topk sort kthvalue median mode cummax cummin', 'selection', cost='input')
# Without a gradient.
define('argmax argmin argsort all any count_nonzero', 'none', cost='input')
define('eq ne lt le gt ge isnan isinf isfinite logical_and logical_or logical_xor logical_not and or xor '
       'invert bitwise_and bitwise_or bitwise_xor bitwise_not floordiv floor_divide remainder fmod mod floor '
       'ceil round trunc sign heaviside bernoulli one_hot zeros_like ones_like full_like empty_like rand_like '
       'randn_like new_zeros new_ones new_full new_empty new_tensor zero fill uniform normal long int short '
       'bool', 'none')
define('cross_entropy nll_loss mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy '
       'binary_cross_entropy_with_logits kl_div poisson_nll_loss gaussian_nll_loss hinge_embedding_loss '
       'margin_ranking_loss soft_margin_loss cosine_embedding_loss triplet_margin_loss multi_margin_loss', 'in',
       'loss', cost='loss')

ALIASES = {
    'iadd': 'add', 'isub': 'sub', 'imul': 'mul', 'itruediv': 'div', 'ipow': 'pow', 'imatmul': 'matmul',
    'iand': 'and', 'ior': 'or', 'ixor': 'xor', 'truediv': 'div', 'divide': 'div', 'true_divide': 'div',
    'multiply': 'mul', 'subtract': 'sub', 'negative': 'neg', 'absolute': 'abs', 'clip': 'clamp',
    'concat': 'cat', 'concatenate': 'cat', 'hstack': 'cat', 'vstack': 'cat', 'expand_as': 'expand',
}
MODULES = {     # classes of torch.nn whose op has another name than theirs in lower case
    'LeakyReLU': 'leaky_relu', 'LogSigmoid': 'logsigmoid', 'Softmax2d': 'softmax', 'LogSoftmax': 'log_softmax',
    'LayerNorm': 'layer_norm', 'GroupNorm': 'group_norm', 'RMSNorm': 'rms_norm', 'SyncBatchNorm': 'batch_norm',
    'LocalResponseNorm': 'local_response_norm', 'EmbeddingBag': 'embedding_bag', 'AlphaDropout': 'dropout',
    'FeatureAlphaDropout': 'dropout', 'Unflatten': 'view', 'Identity': 'copy', 'PixelShuffle': 'pixel_shuffle',
    'PixelUnshuffle': 'pixel_unshuffle', 'ChannelShuffle': 'channel_shuffle', 'ZeroPad2d': 'pad',
    'CosineSimilarity': 'cosine_similarity', 'CrossEntropyLoss': 'cross_entropy', 'NLLLoss': 'nll_loss',
    'MSELoss': 'mse_loss', 'L1Loss': 'l1_loss', 'SmoothL1Loss': 'smooth_l1_loss', 'HuberLoss': 'huber_loss',
    'BCELoss': 'binary_cross_entropy', 'BCEWithLogitsLoss': 'binary_cross_entropy_with_logits',
    'KLDivLoss': 'kl_div', 'PoissonNLLLoss': 'poisson_nll_loss', 'GaussianNLLLoss': 'gaussian_nll_loss',
    'CosineEmbeddingLoss': 'cosine_embedding_loss', 'TripletMarginLoss': 'triplet_margin_loss',
    'MultiheadAttention': 'multi_head_attention',
}
for d in '123':
    MODULES.update({'ConvTranspose%sd' % d: 'conv_transpose%sd' % d, 'BatchNorm%sd' % d: 'batch_norm',
                    'InstanceNorm%sd' % d: 'instance_norm', 'MaxPool%sd' % d: 'max_pool%sd' % d,
                    'AvgPool%sd' % d: 'avg_pool%sd' % d, 'AdaptiveAvgPool%sd' % d: 'adaptive_avg_pool%sd' % d,
                    'AdaptiveMaxPool%sd' % d: 'adaptive_max_pool%sd' % d, 'ReflectionPad%sd' % d: 'pad',
                    'ReplicationPad%sd' % d: 'pad', 'ConstantPad%sd' % d: 'pad'})
CONTAINERS = {'Sequential', 'ModuleList', 'ModuleDict', 'Transformer', 'TransformerEncoder',     # looked into
              'TransformerDecoder', 'TransformerEncoderLayer', 'TransformerDecoderLayer'}
# Copies that kernels with strides do not need; what reads no data of its input; what reads none of its target.
RELAYOUTS = {'contiguous', 'reshape', 'reshape_as', 'flatten'}
SHAPE_ONLY = {'zeros_like', 'ones_like', 'full_like', 'empty_like', 'rand_like', 'randn_like', 'new_zeros',
              'new_ones', 'new_full', 'new_empty', 'new_tensor'}
OVERWRITES = {'copy', 'zero', 'fill', 'uniform', 'normal', 'bernoulli'}
FOLDED = {'relu', 'relu6', 'leaky_relu', 'elu', 'selu', 'celu', 'sigmoid', 'tanh', 'hardtanh'}


def first_line(error): return str(error).strip().split('\n')[0] or type(error).__name__


def tensors_in(value):
    found = []
    def visit(a):
        if isinstance(a, torch.Tensor): found.append(a)
        elif isinstance(a, (tuple, list)): [visit(b) for b in a]
        elif isinstance(a, dict): [visit(b) for b in a.values()]
        elif isinstance(a, slice): [visit(b) for b in (a.start, a.stop, a.step)]
    visit(value)
    return found


def size_of(tensor): return tensor.numel() * tensor.element_size()


def storage_of(tensor):
    """A number that views of one storage share."""
    storage = tensor.untyped_storage() if hasattr(tensor, 'untyped_storage') else tensor._storage()
    return storage._cdata


def storage_bytes(tensor):
    storage = tensor.untyped_storage() if hasattr(tensor, 'untyped_storage') else None
    return storage.nbytes() if storage is not None else size_of(tensor)


class Call:
    """One op that was executed: what it was given and what it gave."""

    def __init__(self, node_name, name, module, args, kwargs):
        self.node_name, self.name, self.module, self.args, self.kwargs = node_name, name, module, args, kwargs
        self.tensors = tensors_in((args, kwargs))
        self.results = []
        self.held = []              # what autograd saved
        self.is_custom = False      # a torch.autograd.Function

    def argument(self, position, name, default=None):
        if self.module is not None and hasattr(self.module, name): return getattr(self.module, name)
        return self.args[position] if len(self.args) > position else self.kwargs.get(name, default)

    def operands(self):
        """The tensors whose gradients need one another."""
        weight = getattr(self.module, 'weight', None)
        if weight is not None: return [self.tensors[0], weight]
        if self.name in ('baddbmm', 'addmm', 'addbmm'): return self.tensors[-2:]
        return self.tensors[:2] if self.name.startswith(('conv', 'linear')) else self.tensors


def row_weights(call):
    """Parameters whose dimension 0 counts what the op makes: outputs of a linear layer or convolution, entries."""
    if call.name not in ('linear', 'conv1d', 'conv2d', 'conv3d', 'embedding'): return []
    weights = [call.argument(1, 'weight'), None if call.name == 'embedding' else call.argument(2, 'bias')]
    given = call.args[0] if call.args else call.kwargs.get('input')
    return [w for w in weights if isinstance(w, nn.Parameter) and w is not given]


# -- costs: FLOP of one forward --

def cost_element(call): return max([t.numel() for t in call.results] or [0])
def cost_input(call): return max([t.numel() for t in call.tensors] + [t.numel() for t in call.results])
def cost_loss(call): return call.tensors[0].numel()


def cost_pool(call):
    size, rank = call.argument(1, 'kernel_size'), int(call.name.split('d')[0][-1])
    return call.results[0].numel() * (math.prod(size) if isinstance(size, (tuple, list)) and len(size) > 1
                                      else (size if isinstance(size, int) else size[0]) ** rank)


def cost_adaptive(call):
    rank = int(call.name.split('d_')[0].rstrip('d')[-1])
    given, made = call.tensors[0].shape[-rank:], call.results[0].shape[-rank:]
    return call.results[0].numel() * math.prod(-(-a // b) for a, b in zip(given, made))


def bias_of(call, position):
    return call.results[0].numel() if call.argument(position, 'bias') is not None else 0


def cost_conv(call):
    weight = call.argument(1, 'weight')
    return 2 * call.results[0].numel() * (weight.numel() // weight.shape[0]) + bias_of(call, 2)


def cost_conv_transpose(call):
    weight = call.argument(1, 'weight')
    return 2 * call.tensors[0].numel() * (weight.numel() // weight.shape[0]) + bias_of(call, 2)


def cost_linear(call): return 2 * call.results[0].numel() * call.tensors[0].shape[-1] + bias_of(call, 2)


def cost_matmul(call):
    left, made = call.operands()[0], call.results[0].numel()
    adds = call.name in ('baddbmm', 'addmm', 'addbmm') and call.kwargs.get('beta', 1) != 0
    return 2 * made * left.shape[-1] * (left.shape[0] if call.name == 'addbmm' else 1) + (made if adds else 0)


def cost_einsum(call):
    sizes = {}
    terms = call.args[0].replace(' ', '').split('->')[0].split(',') if isinstance(call.args[0], str) else []
    for term, tensor in zip(terms, call.tensors):
        plain = term.replace('...', '')
        for k, letter in enumerate(reversed(plain.partition('...')[0])): sizes[letter] = tensor.shape[-1 - k]
    if not terms or '.' in ''.join(terms): return 2 * cost_element(call) * call.tensors[0].shape[-1]
    return (2 if len(terms) > 1 else 1) * math.prod(sizes.values())


def cost_attention(call):
    query, key, value = call.tensors[:3]
    scores = query.numel() // query.shape[-1] * key.shape[-2]
    return 2 * scores * (query.shape[-1] + value.shape[-1]) + scores


COSTS = {'element': cost_element, 'input': cost_input, 'loss': cost_loss, 'pool': cost_pool,
         'adaptive': cost_adaptive, 'conv': cost_conv, 'conv_transpose': cost_conv_transpose,
         'linear': cost_linear, 'matmul': cost_matmul, 'einsum': cost_einsum, 'attention': cost_attention,
         'embedding': cost_element}


def bytes_moved(call, op, given):
    """What a forward reads and writes; scales, biases and statistics are too small to count."""
    made = sum(map(size_of, call.results))
    if op.cost == 'embedding': return 2 * made      # rows read, rows written
    if op.cost == 'loss': return 2 * size_of(call.tensors[0])
    if op.cost in ('conv', 'conv_transpose', 'linear'):
        return size_of(call.tensors[0]) + size_of(call.argument(1, 'weight')) + made
    return sum(map(size_of, given)) + made


def read_tensors(call, op):
    """([tensors given], [numbers of results]) that the backward reads."""
    given, results = call.tensors, list(range(len(call.results)))
    if op.needs == 'none': return [], []
    if op.needs == 'in': return given, []
    if op.needs == 'out': return [], results
    if op.needs == 'in,out': return given, results
    if op.needs == 'index': return [t for t in given if not t.is_floating_point()], []
    if op.needs == 'operands':      # one is read for the gradient of another
        all_of = call.operands()
        wanted = [any(b.requires_grad for b in all_of[:i] + all_of[i + 1:]) for i in range(len(all_of))]
        return [a for a, is_wanted in zip(all_of, wanted) if is_wanted], []
    first_is_tensor = isinstance(call.args[0], torch.Tensor)
    if op.needs == 'quotient':
        if len(given) == 1: return [] if first_is_tensor else given, []
        return given if given[1].requires_grad else given[1:], []
    if op.needs == 'power':
        return given if first_is_tensor else [], results if len(given) > 1 or not first_is_tensor else []
    # With a dimension a selection gives values and their positions, which suffice.
    return ([], [1]) if len(call.results) > 1 else (given, results)


def saved_tensors(call):
    """([tensors given], [numbers of results], bytes of others) that an autograd.Function keeps for backward."""
    contexts = [t.grad_fn for t in call.results if t.grad_fn is not None]
    kept = tensors_in([(c.saved_tensors, vars(c)) for c in contexts[:1]])
    given, made = {storage_of(t) for t in call.tensors}, [storage_of(t) for t in call.results]
    sizes = {storage_of(t): size_of(t) for t in kept}
    return ([t for t in call.tensors if storage_of(t) in sizes], [k for k, s in enumerate(made) if s in sizes],
            sum(size for s, size in sizes.items() if s not in given and s not in made))


# -- tracing --

class CustomFunction:
    """The apply of a torch.autograd.Function, as a function that torch.fx can call."""

    def __init__(self, function, apply):
        self.__name__ = self.__qualname__ = function.__name__
        self.function, self.apply = function, apply

    def __call__(self, *args, **kwargs): return self.apply(self.function, *args, **kwargs)


@contextlib.contextmanager
def custom_functions(tracer):
    """A torch.autograd.Function runs its forward without gradients: it is traced as one node, not looked into."""
    own = 'apply' in vars(torch.autograd.Function)
    before = vars(torch.autograd.Function).get('apply')
    if not own: original = lambda function, *args: super(torch.autograd.Function, function).apply(*args)
    elif hasattr(before, '__func__'): original = before.__func__    # a classmethod: until 2.14
    else: original = lambda function, *args: before.__get__(None, function)(*args)

    def apply(function, *args, **kwargs):
        if tracer.running or not any(isinstance(a, fx.Proxy) for a in [*args, *kwargs.values()]):
            return original(function, *args, **kwargs)
        if function.__module__ == 'torch.utils.checkpoint' and callable(args[0]): return args[0](*args[2:])
        return tracer.create_proxy('call_function', CustomFunction(function, original), args, kwargs)
    torch.autograd.Function.apply = classmethod(apply)
    try: yield
    finally:
        if own: torch.autograd.Function.apply = before
        else: del torch.autograd.Function.apply


@contextlib.contextmanager
def without_autocast():
    """Autocast that forward enters, in any form, is an error."""
    kind = torch.autocast
    init, enter = kind.__init__, kind.__enter__

    def remember(self, device_type, *args, **kwargs):
        # Where the device is missing it is off, or an error: what was asked for counts.
        self.is_wanted = kwargs.get('enabled', args[1] if len(args) > 1 else True)
        try: init(self, device_type, *args, **kwargs)
        except Exception as error: raise ExportError(AUTOCAST) from error

    def refuse(self, *args):
        if getattr(self, 'is_wanted', self._enabled): raise ExportError(AUTOCAST)
        return enter(self, *args)
    kind.__init__, kind.__enter__ = remember, refuse
    try: yield
    finally: kind.__init__, kind.__enter__ = init, enter


AUTOCAST = ('the module runs under torch.autocast, whose types are not followed; convert it, as with '
            'module.bfloat16(), and export that')


def is_autocast():
    try: return any(map(torch.is_autocast_enabled, ('cpu', 'cuda', 'xpu')))
    except TypeError: return torch.is_autocast_enabled() or torch.is_autocast_cpu_enabled()     # before 2.4


class Buffer:
    """A storage: its bytes and the tensor of the graph that holds its present value; node None: a constant."""

    def __init__(self, tensor, node=None, output=0, size=None):
        self.tensor, self.node, self.output = tensor, node, output      # tensor: keeps the storage alive
        self.bytes = size_of(tensor) if size is None else size


class ValueProxy(fx.Proxy):
    """A proxy that knows its value on the meta device: shapes are numbers, and control flow on them works."""

    def __getattr__(self, name):
        value = getattr(self.tracer.value_of(self.node), name)
        if isinstance(value, torch.Tensor):
            return self.tracer.create_proxy('call_function', getattr, (self, name), {})
        return fx.proxy.Attribute(self, name) if callable(value) and not isinstance(value, type) else value

    def __len__(self): return len(self.tracer.value_of(self.node))
    def __iter__(self): return iter([self[k] for k in range(len(self))])
    def __contains__(self, item): return self.tracer.to_bool(self)

    def __setitem__(self, key, value):
        self.tracer.create_proxy('call_function', operator.setitem, (self, key, value), {})


def in_place_operator(name):
    target = getattr(operator, 'i' + name)
    def change(self, other):
        return self.tracer.create_proxy('call_function', target, (self, other), {}, name=name)
    return change


for name in ('add', 'sub', 'mul', 'truediv', 'pow'):
    setattr(ValueProxy, '__i%s__' % name, in_place_operator(name))


def untraced(method):
    """What it does with modules and tensors is not part of the trace."""
    def run(self, *args):
        before, self.running = self.running, True
        try: return method(self, *args)
        finally: self.running = before
    return run


class Tracer(fx.Tracer):
    def __init__(self, inputs, unknown, copies, params, needs):
        super().__init__(param_shapes_constant=False)
        self.given, self.unknown, self.copies, self.counts_params = inputs, unknown, copies, params
        self.needs = needs
        self.running = False        # inside of what is untraced
        self.nodes, self.buffers, self.counted = [], {}, set()
        self.constants = {}         # name -> value
        self.own = set()            # storages of the module

    # what fx asks

    def is_leaf_module(self, m, module_qualified_name):
        return m.__module__.startswith('torch.nn') and type(m).__name__ not in CONTAINERS

    def call_module(self, m, forward, args, kwargs):
        return forward(*args, **kwargs) if self.running else super().call_module(m, forward, args, kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        return attr_val if self.running else super().getattr(attr, attr_val, parameter_proxy_cache)

    def proxy(self, node): return ValueProxy(node, self)

    def create_arg(self, a): return super().create_arg(tuple(a) if isinstance(a, torch.Size) else a)

    def create_args_for_root(self, root_fn, is_module, concrete_args=None):
        """One placeholder per tensor given, by position or by name; what is not given keeps its default."""
        names = list(inspect.signature(inspect.unwrap(root_fn)).parameters)[1:]
        by_name = isinstance(self.given, dict)
        proxies = {}
        for k, (key, tensor) in enumerate(self.given.items() if by_name else enumerate(self.given)):
            name = key if by_name else names[k] if k < len(names) else 'input_%d' % k
            node = self.create_node('placeholder', name, (), {})
            value = torch.empty(tensor.shape, dtype=tensor.dtype, device='meta')
            node.meta['value'] = value
            self.add(Node(node.name, 'input', [size_of(value)]), [value])
            proxies[key] = self.proxy(node)
        if by_name: return lambda root: root_fn(root, **proxies), [self.root]
        return root_fn, [self.root, *proxies.values()]

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        if isinstance(target, types.FunctionType) and not target.__module__.startswith('torch.') \
                and target.__name__.strip('_') not in OPS:
            return target(*args, **kwargs)      # torch.fx.wrap would hide what it does
        node = super().create_proxy(kind, target, args, kwargs, name, type_expr).node
        if kind == 'get_attr': return self.proxy(node)
        value = self.execute(node)
        node.meta['value'] = value
        if tensors_in(value): return self.proxy(node)
        self.graph.erase_node(node)         # a number, a shape, a type: plain Python from here on
        return value

    # execution

    @untraced
    def value_of(self, node):
        if 'value' in node.meta: return node.meta['value']
        if node.op == 'call_function':      # a namedtuple
            return node.target(*fx.node.map_arg(node.args, self.value_of))
        if node.target not in self.constants:
            value = self.root
            for word in node.target.split('.'): value = getattr(value, word)
            self.constants[node.target] = value if value.device.type == 'meta' else value.to('meta')
        return self.constants[node.target]

    @untraced
    def execute(self, node):
        args = fx.node.map_arg(node.args, self.value_of)
        kwargs = dict(fx.node.map_arg(node.kwargs, self.value_of))
        module = self.root.get_submodule(node.target) if node.op == 'call_module' else None
        call = Call(node.name, self.name_of(node, module), module, args, kwargs)
        call.is_custom = isinstance(node.target, CustomFunction)
        before = {storage_of(t): t._version for t in call.tensors}
        def pack(tensor):
            call.held.append(tensor)
            return tensor
        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                if module is not None: value = module.forward(*args, **kwargs)
                elif node.op == 'call_method': value = getattr(args[0], node.target)(*args[1:], **kwargs)
                else: value = node.target(*args, **kwargs)
        except ExportError:
            raise
        except Exception as error:
            raise ExportError("node '%s': %s does not run on shapes alone: %s" % (
                node.name, call.name, first_line(error))) from error
        if any(t.device.type != 'meta' for t in tensors_in(value)):
            value = fx.node.map_aggregate(value, lambda a: a.to('meta') if isinstance(a, torch.Tensor) else a)
        self.record(call, value, before)
        return value

    def name_of(self, node, module):
        if module is not None:
            names = [c.__name__ for c in type(module).__mro__ if c.__module__.startswith('torch.nn')]
            found = (MODULES.get(n, n.lower()) for n in names)
            return next((n for n in found if n in OPS or n == 'multi_head_attention'), names[0])
        target = node.target
        name = (target if isinstance(target, str) else getattr(target, '__name__', str(target))).strip('_')
        return ALIASES.get(name, name)

    def record(self, call, value, before):
        """The node of an executed op, unless all it made are views."""
        made, changed = {}, {}
        for tensor in tensors_in(value):
            if storage_of(tensor) not in before and storage_of(tensor) not in self.buffers:
                made.setdefault(storage_of(tensor), tensor)
        for tensor in call.tensors:
            if tensor._version == before[storage_of(tensor)]: continue
            if self.buffer(tensor).node is not None: changed.setdefault(storage_of(tensor), tensor)
            elif storage_of(tensor) not in self.own and self.sources(call.tensors):
                raise ExportError("node '%s': %s writes into a tensor that forward made from nothing, which "
                                  "torch.fx does not follow; new_zeros of an input is followed" % (
                                      call.node_name, call.name))
        if not made and not changed: return
        call.results = [*made.values(), *changed.values()]
        if call.name == 'multi_head_attention': return self.record_attention(call, value)
        op = None if call.is_custom else OPS.get(call.name)
        if op is None:
            if self.unknown != 'elementwise':
                raise ExportError("node '%s': the %s %s is not known; --unknown elementwise counts it as 1 per "
                                  "element, its backward as reading %s" % (
                                      call.node_name, 'autograd.Function' if call.is_custom else 'op',
                                      call.name, 'what it saves' if call.is_custom else 'inputs and outputs'))
            op = Op(call.name, 'in,out')
        if call.name in RELAYOUTS and self.copies == 'fold' and self.fold_copy(call): return
        if changed and call.name in FOLDED and self.fold(call, op): return
        self.add_call(call, op, list(changed.values()))

    def buffer(self, tensor): return self.buffers.get(storage_of(tensor)) or Buffer(tensor)

    def sources(self, tensors):
        """The tensors of the graph behind these, each once."""
        found = [(b.node, b.output) for b in map(self.buffer, tensors) if b.node is not None]
        return list(dict.fromkeys(found))

    def fold(self, call, op):
        """An activation in place: part of the node above it, where nothing saw that node's own result."""
        node = self.buffer(call.results[0]).node
        if node.op == 'input' or node.reader_count or node.reads_out: return False
        if node.out != [size_of(call.results[0])]: return False
        node.op += '+' + op.label
        node.reads_out = {0}
        if node.held: node.held = node.held[0], {0}, node.held[2]
        cost = COSTS[op.cost](call)
        node.flops += cost
        node.backward_flops += cost
        return True

    def fold_copy(self, call):
        """The same tensor of the graph under a second storage, which may be changed by itself."""
        source = self.buffer(call.tensors[0])
        if source.node is None: return False
        source.node.reader_count += 1
        self.buffers[storage_of(call.results[0])] = Buffer(call.results[0], source.node, source.output)
        return True

    def add_call(self, call, op, changed):
        given = [] if call.name in SHAPE_ONLY else call.tensors
        if call.name in OVERWRITES and changed and size_of(changed[0]) == self.buffer(changed[0]).bytes:
            given = given[1:]
        out = [self.buffer(t).bytes for t in call.results]      # of what is changed in part: the whole
        read, read_out, saved = saved_tensors(call) if call.is_custom else (*read_tensors(call, op), 0)
        node = Node(call.node_name, op.label, out, self.sources(given))
        node.reads, node.reads_out = set(self.sources(read)), set(read_out)
        node.flops = COSTS[op.cost](call)
        node.backward_flops = node.flops * (2 if op.twice else 1)
        counted = [t for t in given if op.cost in ('matmul', 'einsum') or self.buffer(t).node is not None]
        node.bytes, node.parametric = bytes_moved(call, op, counted), op.twice
        node.saved = saved
        node.held = self.held_by(call, op)
        if self.needs == 'autograd' and node.held: node.reads, node.reads_out, node.saved = node.held
        if op.cost == 'attention': node.saved = 4 * (call.tensors[0].numel() // call.tensors[0].shape[-1])
        node.rowed = row_weights(call)
        if call.module is not None: self.add_params(node, call.module.parameters())
        self.add_params(node, [t for t in call.tensors if isinstance(t, nn.Parameter)])
        if call.name == 'batch_norm' and call.module is not None and call.module.training:
            node.statistics = [b for b in call.module.buffers() if b.is_floating_point()]
        self.add(node, call.results)

    def held_by(self, call, op):
        """What autograd saved: (tensors of the graph, numbers of results, bytes of others); None: not asked."""
        if call.is_custom or op.cost == 'attention': return None    # known; of meta another kernel would answer
        given = {storage_of(t) for t in call.tensors}
        made = [storage_of(t) for t in call.results]
        reads, reads_out, others = set(), set(), {}
        for tensor in call.held:
            storage = storage_of(tensor)
            if storage in made: reads_out.add(made.index(storage))
            elif self.buffer(tensor).node is not None: reads.update(self.sources([tensor]))
            elif storage not in given and storage not in self.own: others[storage] = storage_bytes(tensor)
        return reads, reads_out, sum(others.values())

    def add_params(self, node, parameters):
        for p in parameters:
            if all(p is not w for w in node.weights): node.weights.append(p)
            if self.counts_params and id(p) not in self.counted: node.param += size_of(p)
            self.counted.add(id(p))
        is_all = node.param == sum(map(size_of, node.weights))
        node.param_rows = count_rows(node.weights, [node]) if node.param and is_all else 0

    def add(self, node, results):
        node.grad = node.op != 'input' and any(t.requires_grad for t in results)
        for source, _ in node.inputs: source.reader_count += 1
        for k, tensor in enumerate(results):
            self.buffers[storage_of(tensor)] = Buffer(tensor, node, k, node.out[k])
        self.nodes.append(node)

    def record_attention(self, call, value):
        """nn.MultiheadAttention, which is several ops: projections, products, softmax, dropout, projection."""
        m = call.module
        query, key, values = (call.argument(k, name) for k, name in enumerate(('query', 'key', 'value')))
        masks = [t for t in call.tensors if all(t is not x for x in (query, key, values))]
        lengths = [t.shape[0 if t.dim() == 2 or not m.batch_first else 1] for t in (query, key)]
        batch = query.numel() // query.shape[-1] // lengths[0]
        element, grad, head = query.element_size(), value[0].requires_grad, m.embed_dim // m.num_heads

        def stage(suffix, op, numel, inputs, needs, flops, moved=0, twice=False, results=()):
            node = Node('%s_%s' % (call.node_name, suffix), op, [numel * element], dict.fromkeys(inputs))
            node.reads = set(inputs) if needs == 'in' else set()
            node.reads_out = {0} if needs == 'out' else set()
            node.flops, node.backward_flops, node.parametric = flops, flops * (1 + twice), twice
            node.bytes = node.out[0] + moved + sum(n.out[k] for n, k in node.inputs)
            self.add(node, results)
            node.grad = grad
            return node, 0

        def project(suffix, tensor, width, factor, results=(), inputs=None):
            rows = tensor.numel() // tensor.shape[-1]
            flops = 2 * rows * width * factor + (rows * factor if m.in_proj_bias is not None else 0)
            return stage(suffix, 'linear', rows * factor, inputs or self.sources([tensor]), 'in', flops,
                         width * factor * element, True, results)
        source = self.sources([query])
        if self.needs == 'autograd' and m.batch_first and source and source[0][0].op == 'input':
            # PyTorch keeps the samples of an input behind each other, in a copy.
            source = [stage('layout', 'copy', query.numel(), source, 'none', query.numel())]
            source[0][0].grad = False
        if query is key and key is values:
            q = k = v = project('qkv', query, query.shape[-1], 3 * m.embed_dim, inputs=source)
        else:
            q, k, v = [project(s, t, t.shape[-1], m.embed_dim) for s, t in zip('qkv', (query, key, values))]
        scores = batch * m.num_heads * lengths[0] * lengths[1]
        flops = 2 * scores * head
        rows = batch * lengths[0]
        if value[1] is None and hasattr(nn.functional, 'scaled_dot_product_attention'):
            mixed = stage('attention', 'attention', rows * m.embed_dim, [q, k, v] + self.sources(masks), 'out',
                          2 * flops + scores, twice=True)
            mixed[0].reads, mixed[0].saved = {q, k, v}, 4 * rows * m.num_heads
            last = project('proj', query, m.embed_dim, m.embed_dim, [value[0]], [mixed])
            self.add_params(last[0], m.parameters())
            return
        if self.needs == 'autograd' and hasattr(nn.functional, 'scaled_dot_product_attention'):
            # From 2.0 on PyTorch keeps queries divided by the root of their length, too.
            q = stage('scale', 'mul', rows * m.embed_dim, [q], 'none', rows * m.embed_dim)
        attention = stage('qk', 'bmm', scores, [q, k] + self.sources(masks), 'none', flops, twice=True)
        attention[0].reads = {q, k}
        attention = weights = stage('softmax', 'softmax', scores, [attention], 'out', scores)
        if m.dropout and m.training:
            attention = stage('dropout', 'dropout', scores, [attention], 'none', scores)
        mixed = stage('av', 'bmm', batch * lengths[0] * m.embed_dim, [attention, v], 'in', flops, twice=True)
        last = project('proj', query, m.embed_dim, m.embed_dim, [value[0]], [mixed])
        self.add_params(last[0], m.parameters())
        if value[1] is None: return
        if value[1].numel() == scores: self.buffers[storage_of(value[1])] = Buffer(value[1], *weights)
        else: stage('weights', 'mean', value[1].numel(), [weights], 'none', scores, results=[value[1]])


# -- export --

def without_data(model):
    """A copy whose parameters and buffers are on the meta device."""
    memo = {}
    for p in model.parameters():
        memo[id(p)] = nn.Parameter(torch.empty_like(p, device='meta'), requires_grad=p.requires_grad)
    for b in model.buffers(): memo[id(b)] = torch.empty_like(b, device='meta')
    return copy.deepcopy(model, memo)


def add_loss(tracer, outputs):
    """A loss per sample, which reads the outputs."""
    numel, names = sum(t.numel() for t in outputs), {n.name for n in tracer.nodes}
    samples = outputs[0].shape[0] if outputs[0].dim() else 1
    node = Node(next(n for n in ('loss', 'loss_%d' % len(names)) if n not in names), 'loss', [4 * samples],
                tracer.sources(outputs))
    node.reads = set(node.inputs)
    node.flops = node.backward_flops = numel
    node.bytes = 2 * sum(map(size_of, outputs))
    tracer.add(node, [])
    node.grad = True
    return node


def finish(tracer, outputs, loss):
    """Drop what no output needs, gradients that never arrive, and number the rest."""
    graded = [t for t in outputs if t.requires_grad and tracer.buffer(t).node is not None]
    roots = tracer.sources(outputs)
    losses = [t for t in graded if t.numel() == 1 or tracer.buffer(t).node.op == 'loss']
    if loss == 'add' and not graded: raise ExportError('no output has a gradient, so there can be no loss')
    if loss == 'add' or loss == 'auto' and graded and not losses: ends = [add_loss(tracer, graded)]
    else: ends = [n for n, _ in tracer.sources(losses if loss == 'auto' else graded)]
    live = reach([n for n, _ in roots] + ends, lambda n: True)
    arrives = reach([n for n in ends if n.grad], lambda n: n.grad)
    nodes = [n for n in tracer.nodes if n in live or n.op == 'input']
    for k, node in enumerate(nodes):
        node.id = k
        node.grad = node.grad and node in arrives
    for node, _ in roots: node.keep = not node.grad and node.op != 'input'
    return nodes


def count_rows(tensors, readers):
    """Rows of weights that lie one behind the other in each: all have one for each output of all their readers; else 0."""
    counts = {t.shape[0] for t in tensors}
    is_rowed = all(any(t is r for r in n.rowed) for t in tensors for n in readers)
    return counts.pop() if is_rowed and len(counts) == 1 and counts != {1} else 0


def own_weights(nodes, optimizer, updates):
    """nodes with the states that their weights become: above their first reader, or above all nodes."""
    readers, groups, states = {}, {}, {}
    for node in nodes:
        for kind, tensors in (None, node.weights), ('stat', node.statistics):
            for t in tensors: readers.setdefault(id(t), (t, kind, []))[2].append(node)
    for tensor, kind, of in readers.values():
        trains = tensor.requires_grad and any(n.grad for n in of)
        kind = kind or (optimizer if trains else 'frozen')
        groups.setdefault((kind, tuple(n.id for n in of)), (of, []))[1].append(tensor)
    taken = {n.name for n in nodes}
    for (kind, _), (of, tensors) in groups.items():
        name = '%s.%s' % (of[0].name, 'w' if kind in OPTIMIZERS else kind)
        while name in taken: name += '_'
        taken.add(name)
        state = State(name, kind, tensors, count_rows(tensors, of))
        states.setdefault(of[0] if updates == 'fused' else nodes[0], []).append(state)
        for node in of:     # a backward reads weights where it makes the gradient of what it read
            passes = node.grad and any(source.grad for source, _ in node.inputs if isinstance(source, Node))
            node.inputs.append((state, 0))
            if passes and kind in (optimizer, 'frozen'): node.reads.add((state, 0))
    owned = [n for node in nodes for n in states.get(node, []) + [node]]
    for k, node in enumerate(owned): node.id = k
    for node in nodes: node.param = 0
    return owned


def kept_bytes(nodes, held):
    """What backwards read, inputs of the graph aside: as written here, or as autograd holds it."""
    tensors, saved = set(), 0
    for n in nodes:
        if not n.grad: continue
        reads, reads_out, more = n.held if held and n.held else (n.reads, n.reads_out, n.saved)
        tensors.update(t for t in reads if t[0].op != 'input')
        tensors.update((n, k) for k in reads_out)
        saved += more
    return saved + sum(n.out[k] for n, k in tensors)


def note_of(nodes):
    """What to say where autograd keeps other bytes: how many times these, and for which ops mostly."""
    here, there = kept_bytes(nodes, False), kept_bytes(nodes, True)
    if abs(here - there) * 100 <= max(here, there): return ''
    apart = {}
    for n in nodes:
        if not n.grad or not n.held: continue
        reads, reads_out, saved = n.held
        differ = sum(m.out[k] for m, k in reads ^ n.reads if m.op != 'input')
        differ += abs(saved - n.saved) + sum(n.out[k] for k in reads_out ^ n.reads_out)
        if differ: apart[n.op] = apart.get(n.op, 0) + differ
    ops = sorted(apart, key=apart.get)[:-4:-1]
    return '; PyTorch keeps %.3f x what these backwards read (%s): --needs autograd' % (
        there / max(here, 1), ', '.join(ops))


def reach(start, goes):
    found, stack = set(), list(start)
    while stack:
        node = stack.pop()
        if node in found or not goes(node): continue
        found.add(node)
        stack += [source for source, _ in node.inputs]
    return found


def serves():
    """Whether torch.fx and autograd have what this program needs: a module without anything special is traced."""
    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)

        def forward(self, x): return self.a(x).relu()
    tracer = Tracer([torch.empty(1, 2)], 'error', 'fold', False, 'math')
    try:
        with custom_functions(tracer), without_autocast(): tracer.trace(without_data(Small()))
    except Exception: return False
    return len(tracer.nodes) == 3


def version():
    words = torch.__version__.split('.')
    return tuple(int(''.join(c for c in w if c.isdigit()) or 0) for w in words[:2])


def export(model, inputs, *, cost='flop', loss='auto', unknown='error', copies='fold', params=False,
           needs='math', title=None, optimizer=None, updates='fused'):
    """Trace a module and return its Graph. Neither the module nor the inputs are changed or run.

    inputs   tensors for forward, by position (a tuple) or by name (a dict); only shapes and types are read
    cost     'flop' or 'roofline'
    loss     'add': a loss node behind the outputs; 'none'; 'auto': unless one is a loss or a single number
    unknown  'error', or 'elementwise' for ops that are not in the table
    copies   'fold' reshape, flatten and contiguous as if they never copied, or 'node'
    params   whether nodes say how large their weights are
    optimizer  'sgd', 'momentum' or 'adamw': the graph owns its weights, and the plan updates them
    updates  of these: 'fused', as soon as the gradient is complete, or 'end', when all are
    needs    'math': what a backward has to read; 'autograd': what PyTorch keeps for it
    Raises ExportError, whose text is one sentence.
    """
    if isinstance(inputs, torch.Tensor): inputs = (inputs,)
    if version() < OLDEST: raise ExportError('PyTorch %s is not served: %s are' % (torch.__version__, SERVED))
    if is_autocast(): raise ExportError(AUTOCAST)
    tracer = Tracer(inputs, unknown, copies, params, needs)
    try:
        root = without_data(model)
        tracer.own = {storage_of(t) for t in [*root.parameters(), *root.buffers()]}
        with custom_functions(tracer), without_autocast(): graph = tracer.trace(root)
    except ExportError:
        raise
    except Exception as error:
        if not serves():
            raise ExportError('PyTorch %s is not served: %s are' % (torch.__version__, SERVED)) from error
        last = "after node '%s': " % tracer.nodes[-1].name if tracer.nodes else ''
        raise ExportError('%storch.fx cannot trace the module: %s' % (last, first_line(error))) from error
    output = next(n for n in graph.nodes if n.op == 'output')
    outputs = tensors_in(fx.node.map_arg(output.args, tracer.value_of))
    if all(n.op == 'input' for n, _ in tracer.sources(outputs)):
        raise ExportError('the module returns no tensor that it computed')
    shapes = ', '.join('%s %s' % ('x'.join(map(str, t.shape)) or 'scalar', str(t.dtype)[6:])
                       for t in (inputs.values() if isinstance(inputs, dict) else inputs))
    nodes = finish(tracer, outputs, loss)
    note = '' if needs == 'autograd' else note_of(nodes)
    if optimizer: nodes = own_weights(nodes, optimizer, updates)
    return Graph('%s of %s' % (title or type(model).__name__, shapes), nodes, cost == 'roofline', note)


# -- command line --

def load_file(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    return module


def load_model(name):
    """(model, batch, inputs) of a name: one of tests/torch_models.py, or MODULE:FACTORY."""
    module, colon, factory = name.rpartition(':')
    try:
        if not colon:
            presets = load_file(os.path.join(HERE, '..', 'tests', 'torch_models.py')).MODELS
            if name not in presets:
                raise ExportError('--model %s: there is none; %s, or module.path:factory' % (
                    name, ', '.join(presets)))
            make, batch, inputs = presets[name]
            return make(), batch, inputs
        if '' not in sys.path: sys.path.insert(0, '')
        found = load_file(module) if module.endswith('.py') else importlib.import_module(module)
        made = getattr(found, factory)
        made = made if isinstance(made, nn.Module) else made()
    except ExportError:
        raise
    except Exception as error:
        raise ExportError('--model %s: %s' % (name, first_line(error))) from error
    if not isinstance(made, nn.Module): raise ExportError('--model %s: gives no torch.nn.Module' % name)
    return made, 1, []


def parse_input(text, batch):
    """3x224x224 or 128:int64, a sample without its batch -> a tensor without data"""
    shape, _, kind = text.partition(':')
    dtype = getattr(torch, kind or 'float32', None)
    if not isinstance(dtype, torch.dtype) or not all(w.isdigit() and int(w) for w in shape.split('x') if shape):
        raise ExportError('--input %s: must be sizes like 3x224x224, or with a type of torch 128:int64' % text)
    return torch.empty([batch] + [int(w) for w in shape.split('x') if shape], dtype=dtype, device='meta')


def main(arguments=None):
    about, _, more = __doc__.partition('\n\n')
    parser = argparse.ArgumentParser(description=about, epilog=more,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--model', required=True, metavar='NAME',
                        help='resnet18, vgg16, encoder, ... of tests/torch_models.py, module.path:factory, or '
                             'file.py:factory')
    parser.add_argument('--batch', type=int, metavar='N', help='samples; first dimension of every input')
    parser.add_argument('--input', action='append', metavar='SHAPE[:TYPE]',
                        help='one sample of an input: 3x224x224 (float32), 128:int64; once per input')
    parser.add_argument('--cost', choices=['flop', 'roofline'], default='flop', help='unit of costs (flop)')
    parser.add_argument('--loss', choices=['auto', 'add', 'none'], default='auto',
                        help='a loss node behind the outputs; auto: unless the module computes one')
    parser.add_argument('--unknown', choices=['error', 'elementwise'], default='error',
                        help='ops that are not known')
    parser.add_argument('--copies', choices=['fold', 'node'], default='fold',
                        help='reshape, flatten and contiguous where they copy')
    parser.add_argument('--needs', choices=['math', 'autograd'], default='math',
                        help='what a backward has to read (math), or what PyTorch keeps for it')
    parser.add_argument('--params', action='store_true', help='write param=<bytes of weights>')
    parser.add_argument('--optimizer', choices=list(OPTIMIZERS),
                        help='the graph owns its weights, with what this one keeps of them; it plans all bytes of a step')
    parser.add_argument('--updates', choices=['fused', 'end'], default='fused',
                        help='of --optimizer: each as soon as its gradient is complete (fused), or all at the end')
    parser.add_argument('--eval', action='store_true', help='the module as in evaluation, not as in training')
    parser.add_argument('-o', metavar='FILE', help='where to; standard output without')
    options = parser.parse_args(arguments)
    sys.dont_write_bytecode = True      # no folders beside the files that --model names
    try:
        if options.batch is not None and options.batch < 1: raise ExportError('--batch: must be > 0')
        model, batch, inputs = load_model(options.model)
        batch, inputs = options.batch or batch, options.input or inputs
        if not inputs: raise ExportError('--input: needed for %s' % options.model)
        graph = export(model.train(not options.eval), [parse_input(text, batch) for text in inputs],
                       cost=options.cost, loss=options.loss, unknown=options.unknown, copies=options.copies,
                       params=options.params, needs=options.needs, title=options.model,
                       optimizer=options.optimizer, updates=options.updates)
        if options.o: graph.write(options.o)
        else: sys.stdout.write(str(graph))
    except (ExportError, OSError) as error:
        sys.exit('export_torch: %s' % error)


if __name__ == '__main__': main()
