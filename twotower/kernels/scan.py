"""Maximum inner product over blocks of LANES candidates, feature by feature.

A block is one vector a feature, so a scan reads memory from one end to the other. Hardly any block holds a new best:
its products are compared with the best so far at once, and looked at again only where one is larger.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils

from twotower.kernels.counter import intrinsic
from twotower.kernels.layout import CACHE_LINE, LANES

UNROLLED = 24  # up to so many features the query stays in registers
TOGETHER = 2**15  # bytes of blocks that `winners` keeps in the first-level cache for all its queries

_FLOAT, _INT = ir.FloatType(), ir.IntType(64)
_VECTOR, _MASK = ir.VectorType(_FLOAT, LANES), ir.IntType(LANES)


@intrinsic
def scan(typing_context, queries, query_at, tiles, tiles_at, size, begin, end, best, place):
    """The largest product of a query with blocks [begin, end) if it exceeds `best`, and the first place that has it.

    The query begins at number `query_at` of its array, the blocks at number `tiles_at` of theirs.
    """

    def generate(context, builder, signature, arguments):
        pointers = [
            builder.gep(context.make_array(kind)(context, builder, array).data, [at])
            for kind, array, at in zip(signature.args[0:3:2], arguments[0:3:2], arguments[1:4:2], strict=True)
        ]
        pointers[1] = builder.bitcast(pointers[1], _VECTOR.as_pointer())
        return builder.call(_scanner(builder.module), [*pointers, *arguments[4:]])

    number = types.int64
    taken = (queries, number, tiles, number, number, number, number, types.float32, number)
    return types.Tuple((types.float32, number))(*taken), generate


def _scanner(module: Any) -> Any:
    """The function behind `scan`: one a module, for it is long."""
    takes = [_FLOAT.as_pointer(), _VECTOR.as_pointer(), _INT, _INT, _INT, _FLOAT, _INT]
    kind = ir.FunctionType(ir.LiteralStructType([_FLOAT, _INT]), takes)
    function = cgutils.get_or_insert_function(module, kind, "twotower_scan")
    if not function.is_declaration:
        return function
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    query, blocks, size, begin, end, best, place = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    winner = cgutils.alloca_once_value(builder, best), cgutils.alloca_once_value(builder, place)
    done, general = function.append_basic_block("done"), function.append_basic_block("general")
    choice = builder.switch(size, general)
    for unrolled in range(1, UNROLLED + 1):
        case = function.append_basic_block(f"of_{unrolled}")
        choice.add_case(_number(unrolled), case)
        builder.position_at_end(case)
        weights = [_spread(builder, builder.load(builder.gep(query, [_number(c)]))) for c in range(unrolled)]
        with cgutils.for_range_slice(builder, begin, end, _number(1), inc=True) as (block, _):
            _raise(builder, _unrolled_products(builder, weights, blocks, block), block, winner)
        builder.branch(done)
    builder.position_at_end(general)
    with cgutils.for_range_slice(builder, begin, end, _number(1), inc=True) as (block, _):
        _raise(builder, _products(builder, query, blocks, block, size), block, winner)
    builder.branch(done)
    builder.position_at_end(done)
    builder.ret(cgutils.pack_struct(builder, [builder.load(one) for one in winner]))
    return function


@intrinsic
def turn(typing_context, latents, first, tiles, size, blocks, block_step, feature_step):
    """Lay the latents (N, d) from row `first` on out as so many vectors a feature; 0 if d is too large for it.

    In `tiles` a block's vectors are feature_step vectors apart, and blocks are block_step apart.
    """

    def generate(context, builder, signature, arguments):
        rows, out = (
            context.make_array(kind)(context, builder, array).data
            for kind, array in zip(signature.args[0:3:2], arguments[0:3:2], strict=True)
        )
        begin = builder.gep(rows, [builder.mul(arguments[1], arguments[3])])
        return builder.call(
            _turner(builder.module), [begin, builder.bitcast(out, _VECTOR.as_pointer()), *arguments[3:]]
        )

    number = types.int64
    return number(latents, number, tiles, number, number, number, number), generate


def _turner(module: Any) -> Any:
    """The function behind `turn`."""
    kind = ir.FunctionType(_INT, [_FLOAT.as_pointer(), _VECTOR.as_pointer(), _INT, _INT, _INT, _INT])
    function = cgutils.get_or_insert_function(module, kind, "twotower_turn")
    if not function.is_declaration:
        return function
    function.linkage = "linkonce_odr"
    function.attributes.add("noinline")
    rows, out, size, blocks, block_step, feature_step = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    general = function.append_basic_block("general")
    choice = builder.switch(size, general)
    for unrolled in range(1, UNROLLED + 1):
        case = function.append_basic_block(f"of_{unrolled}")
        choice.add_case(_number(unrolled), case)
        builder.position_at_end(case)
        wide = ir.VectorType(_FLOAT, LANES * unrolled)
        with cgutils.for_range_slice(builder, _number(0), blocks, _number(1), inc=True) as (block, _):
            at = builder.gep(rows, [builder.mul(block, _number(LANES * unrolled))])
            numbers = builder.load(builder.bitcast(at, wide.as_pointer()), align=4)
            for c in range(unrolled):
                lanes = [c + unrolled * lane for lane in range(LANES)]
                every = ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes)
                place = builder.add(builder.mul(block, block_step), builder.mul(_number(c), feature_step))
                vector = builder.shuffle_vector(numbers, ir.Constant(wide, ir.Undefined), every)
                builder.store(vector, builder.gep(out, [place]), align=4)
        builder.ret(_number(1))
    builder.position_at_end(general)
    builder.ret(_number(0))
    return function


def _number(value: int) -> Any:
    return ir.Constant(_INT, value)


def _spread(builder: Any, value: Any) -> Any:
    """A number in every lane."""
    first = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, ir.Constant(_VECTOR, ir.Undefined), zeros)


def _group(builder: Any, weights: list[Any], blocks: Any, first: Any, fused: bool = True) -> Any:
    """w0 x0 + w1 x1 + …, for the features that lie from `first` on; `fused` with what it is added to."""
    total = None
    for c, weight in enumerate(weights):
        x = builder.load(builder.gep(blocks, [builder.add(first, _number(c))]), align=4)
        product = builder.fmul(weight, x, flags=("contract",) if len(weights) > 1 or fused else ())
        total = product if total is None else builder.fadd(total, product, flags=("contract",))
    return total


def _unrolled_products(builder: Any, weights: list[Any], blocks: Any, block: Any) -> Any:
    """The products of a block: the sums of `score_leaf`, in its order."""
    size = len(weights)
    first, total, done = builder.mul(block, _number(size)), None, 0
    while done < size:
        left = size - done
        width = 4 if left >= 4 else 1 if done == 0 else min(left, 2)
        part = _group(builder, weights[done : done + width], blocks, builder.add(first, _number(done)), done > 0)
        total = part if total is None else builder.fadd(total, part, flags=("contract",))
        done += width
    return total


def _products(builder: Any, query: Any, blocks: Any, block: Any, size: Any) -> Any:
    """The same for more than UNROLLED features."""
    first, total = builder.mul(block, size), cgutils.alloca_once(builder, _VECTOR)

    def group(begin: Any, width: int) -> Any:
        weights = [
            _spread(builder, builder.load(builder.gep(query, [builder.add(begin, _number(c))]))) for c in range(width)
        ]
        return _group(builder, weights, blocks, builder.add(first, begin))

    def add(begin: Any, width: int) -> None:
        builder.store(builder.fadd(builder.load(total), group(begin, width), flags=("contract",)), total)

    builder.store(group(_number(0), 4), total)
    whole = builder.and_(size, _number(-4))
    with cgutils.for_range_slice(builder, _number(4), whole, _number(4), inc=True) as (begin, _):
        add(begin, 4)
    pairs = builder.and_(size, _number(-2))
    with cgutils.for_range_slice(builder, whole, pairs, _number(2), inc=True) as (begin, _):
        add(begin, 2)
    with cgutils.for_range_slice(builder, pairs, size, _number(1), inc=True) as (begin, _):
        add(begin, 1)
    return builder.load(total)


def _raise(builder: Any, products: Any, block: Any, winner: tuple[Any, Any]) -> None:
    """Keep the largest product and its place if it exceeds the best so far."""
    best, place = winner
    higher = builder.fcmp_ordered(">", products, _spread(builder, builder.load(best)))
    some = builder.icmp_unsigned("!=", builder.bitcast(higher, _MASK), ir.Constant(_MASK, 0))
    with builder.if_then(some, likely=False):
        kind = ir.FunctionType(_FLOAT, [_VECTOR])
        reduce = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fmax.v{LANES}f32")
        top = builder.call(reduce, [products], fastmath=("nnan",))
        equal = builder.bitcast(builder.fcmp_ordered("==", products, _spread(builder, top)), _MASK)
        lane = builder.zext(builder.cttz(equal, ir.Constant(ir.IntType(1), 1)), _INT)
        builder.store(top, best)
        builder.store(builder.add(builder.mul(block, _number(LANES)), lane), place)


@njit(cache=True)
def magnitude(numbers):
    """The largest magnitude among numbers (n,) float32: infinite or NaN if any is. (As integers they sort alike.)"""
    bits, largest = numbers.view(np.int32), np.int32(0)
    for i in range(bits.size):
        largest = max(largest, np.int32(bits[i] & np.int32(0x7FFFFFFF)))
    return np.float64(np.array([largest], np.int32).view(np.float32)[0])


@njit(cache=True)
def lay_out(latents, members, tiles, numbers):
    """Fill tiles (blocks, d, LANES) with the members of latents (N, d), and their numbers; the last is repeated."""
    last = members.size - 1
    for place in range(numbers.size):
        numbers[place] = members[min(place, last)]
    for block in range(tiles.shape[0]):
        for lane in range(LANES):
            row = latents[numbers[block * LANES + lane]]
            for c in range(row.size):
                tiles[block, c, lane] = row[c]


@njit(cache=True)
def lay_out_rows(latents, begin, tiles, numbers):
    """Fill tiles (blocks, d, LANES) with the rows of latents (N, d) from `begin` on, and their numbers, if wanted."""
    count, size = latents.shape
    for place in range(numbers.size):
        numbers[place] = min(begin + place, count - 1)  # the last is repeated
    whole = min((count - begin) // LANES, tiles.shape[0])
    if not turn(latents, begin, tiles, size, whole, size, 1):
        whole = 0
    for block in range(whole, tiles.shape[0]):
        for lane in range(LANES):
            row = min(begin + block * LANES + lane, count - 1)
            for c in range(size):
                tiles[block, c, lane] = latents[row, c]


@njit(cache=True)
def aligned(count):
    """Room for so many numbers that begins a cache line."""
    room = np.empty(count + LANES, np.float32)
    start = (-room.ctypes.data % CACHE_LINE) // 4
    return room[start : start + count]


@njit(cache=True)
def winners(queries, latents, best, places):
    """The best product and its row among latents (N, d) for every query (K, d), a chunk at a time for all of them."""
    count, size = latents.shape
    together = max(TOGETHER // (4 * LANES * size), 1)
    tiles = aligned(together * size * LANES).reshape(together, size, LANES)
    best[:] = -np.inf
    places[:] = 0
    for begin in range(0, count, together * LANES):
        blocks = min(together, (count - begin + LANES - 1) // LANES)
        lay_out_rows(latents, begin, tiles[:blocks], places[:0])
        for k in range(queries.shape[0]):
            best[k], place = scan(queries, k * size, tiles, 0, size, 0, blocks, best[k], places[k] - begin)
            places[k] = begin + place


@njit(cache=True)
def search_scan(sets, queries, tables, found, visited):
    """For query n, the number of the best candidate of set sets[n].

    tiles (sets, blocks, d, LANES); numbers (sets, blocks · LANES); used (sets,), how many blocks count. visited (n,)
    counts the candidates scored.
    """
    tiles, numbers, used = tables
    size = queries.shape[1]
    room = tiles.shape[1] * size * LANES
    for n in range(sets.size):
        at = sets[n]
        _, place = scan(queries, n * size, tiles, at * room, size, 0, used[at], np.float32(-np.inf), 0)
        found[n] = numbers[at, place]
        visited[n] = used[at] * LANES
