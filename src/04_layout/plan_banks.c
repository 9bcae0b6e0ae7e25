#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PLANNERS

// -- banks: multipliers --
//
// A multiplier (of Lagrange) is a price of a byte in a section of a bank, beside that of moving. Where each
// buffer lives where price and multipliers together are least, the sum less what the capacities would pay is at
// most the cost of any
// plan:
//
//     bound = sum over buffers of min over banks (price + multipliers of its bytes)
//             - sum of multipliers x capacity
//
// Multipliers rise where more bytes want in than a bank holds, and fall elsewhere, by steps that are as long as
// the distance to the best plan allows (Polyak). They have `bits` bits behind the point, so the bound
// is exact. What a buffer would cost above its least says how much the bound rises if it lives there: the
// search puts the buffers for which that is most first, and ends branches that reach the best plan.

#define TLI_BANKS_STALLS 8      // steps without a better bound before they are halved
#define TLI_BANKS_STEPS 6       // steps of the multipliers between two passes
#define TLI_BANKS_ROUNDS 80     // passes with multipliers
#define TLI_BANKS_FEW 1000      // buffers of which every choice is searched

// Set the sums of these multipliers, and used[] to what sections have more than the one before. Returns the
// bound that they prove, with `bits` bits behind the point; 0 if it does not fit 64 bits.
static uint64_t tli_banks_relax(tli_banks *b) {
    uint64_t total = 0, worth = 0, due;
    int32_t i, k, s;
    int fits = 1;
    for (k = 0; k < b->bank_count; k++) {
        if (!b->multipliers[k]) continue;
        for (s = 0; s < b->section_count; s++) b->sums[k][s + 1] = b->sums[k][s] + b->multipliers[k][s];
        tli_zero(b->used[k], ((size_t)b->section_count + 1) * sizeof *b->used[k]);
        due = tli_align_up(b->desc->banks[k].capacity_bytes, b->banks[k].alignment);
        fits &= tli_mul_u64(b->sums[k][b->section_count], due, &due) && tli_add_u64(worth, due, &worth);
    }
    for (i = 0; i < b->count; i++) {
        uint64_t least = UINT64_MAX, bytes;
        int32_t bank = 0;
        for (k = 0; k < b->bank_count; k++) {
            int32_t other = b->by_price[k];
            if (!tli_banks_may(b, i, other)) continue;
            due = (tli_banks_price(b, i, other) << b->bits) + tli_banks_multiplier(b, i, other);
            if (due < least) { least = due; bank = other; }
        }
        fits &= tli_add_u64(total, least, &total);
        if (!tli_banks_bytes(b, i) || !b->multipliers[bank]) continue;
        bytes = tli_banks_rounded(b, i, bank);
        b->used[bank][b->first[i]] += bytes;
        b->used[bank][b->last[i] + 1] -= bytes;
        if (!b->desc->buffers[i].in_place || !tli_banks_may(b, b->desc->buffers[i].over, bank)) continue;
        b->used[bank][b->first[i]] -= tli_banks_shared(b, i, bank);
        b->used[bank][b->first[i] + 1] += tli_banks_shared(b, i, bank);
    }
    b->work += (uint64_t)b->count * (uint64_t)b->bank_count * 2;
    return fits && total > worth ? total - worth : 0;
}

// Bytes above the capacity of a section, as a signed number, `shift` bits less.
static int64_t tli_banks_excess(const tli_banks *b, int32_t bank, int32_t section, int32_t shift) {
    int64_t excess = (int64_t)b->used[bank][section] -
                     (int64_t)tli_align_up(b->desc->banks[bank].capacity_bytes, b->banks[bank].alignment);
    return excess / ((int64_t)1 << shift);
}

// A step of the multipliers along the excess, as long as the distance to the goal allows. 0 = there is none.
static int tli_banks_step(tli_banks *b, uint64_t distance) {
    uint64_t most = 1, norm = 0, length, limit = (UINT64_C(1) << 61) / ((uint64_t)b->section_count + 1);
    int32_t k, s, shift, up;
    for (k = 0; k < b->bank_count; k++)
        for (s = 0; s < b->section_count && b->multipliers[k]; s++) {
            int64_t excess;
            if (s) b->used[k][s] += b->used[k][s - 1];
            excess = tli_banks_excess(b, k, s, 0);
            most = tli_larger_u64(most, (uint64_t)(excess < 0 ? -excess : excess));
        }
    shift = tli_log2_u64(most) > 19 ? tli_log2_u64(most) - 19 : 0;
    for (k = 0; k < b->bank_count; k++)
        for (s = 0; s < b->section_count && b->multipliers[k]; s++) {
            int64_t excess = tli_banks_excess(b, k, s, shift);
            if (excess > 0 || b->multipliers[k][s]) norm += (uint64_t)(excess * excess);
        }
    if (!norm || !distance) return 0;
    up = 62 - tli_log2_u64(distance);
    length = (distance << up) / norm;
    up += shift + b->halvings;
    for (k = 0; k < b->bank_count && up < 64; k++)
        for (s = 0; s < b->section_count && b->multipliers[k]; s++) {
            int64_t excess = tli_banks_excess(b, k, s, shift);
            uint64_t by = length * (uint64_t)(excess < 0 ? -excess : excess) >> up;
            uint64_t *multiplier = &b->multipliers[k][s];
            if (excess < 0) *multiplier -= by < *multiplier ? by : *multiplier;
            else if (*multiplier + by < limit) *multiplier += by;
        }
    b->work += (uint64_t)b->section_count * (uint64_t)b->bank_count * 3;
    return up < 64;
}

static void tli_banks_copy_multipliers(const tli_banks *b, uint64_t *const *from, uint64_t *const *to) {
    int32_t k;
    for (k = 0; k < b->bank_count; k++)
        if (b->multipliers[k]) tli_copy(to[k], from[k], (size_t)b->section_count * sizeof **to);
}

// Raise the bound by a few steps. 0 = it goes no further.
static int tli_banks_raise(tli_banks *b) {
    uint64_t goal = (b->best_cost == UINT64_MAX ? b->dearest + 1 : b->best_cost) << b->bits;
    int32_t step;
    for (step = 0; step < TLI_BANKS_STEPS; step++) {
        uint64_t sum = tli_banks_relax(b);
        if (sum > b->relaxed) {
            b->relaxed = sum;
            b->stalls = 0;
            tli_banks_copy_multipliers(b, b->multipliers, b->best_multipliers);
        } else if (++b->stalls >= TLI_BANKS_STALLS) {
            b->stalls = 0;
            b->halvings++;
            tli_banks_copy_multipliers(b, b->best_multipliers, b->multipliers);
            sum = tli_banks_relax(b);
        }
        b->bound = tli_larger_u64(b->bound, (b->relaxed + ((UINT64_C(1) << b->bits) - 1)) >> b->bits);
        if (b->relaxed >= goal || !tli_banks_step(b, goal - (sum < goal ? sum : goal))) return 0;
    }
    return b->halvings < 12;
}

// -- banks: the search --

// What a buffer pays in a bank, with multipliers.
static uint64_t tli_banks_due(const tli_banks *b, int32_t i, int32_t bank) {
    return (tli_banks_price(b, i, bank) << b->bits) + tli_banks_multiplier(b, i, bank);
}

// The bank that is not in a set and where a buffer pays least; -1 = none. *above: how much more than anywhere.
static int32_t tli_banks_next(tli_banks *b, int32_t i, uint32_t tried, uint64_t *above) {
    uint64_t least = UINT64_MAX, due, found = UINT64_MAX;
    int32_t k, bank = -1;
    for (k = 0; k < b->bank_count; k++) {
        int32_t other = b->by_price[k];
        if (!tli_banks_may(b, i, other)) continue;
        due = tli_banks_due(b, i, other);
        if (due < least) least = due;
        if (!(tried >> other & 1) && due < found) { found = due; bank = other; }
    }
    *above = bank < 0 ? 0 : found - least;
    b->work += 4 * (uint64_t)b->bank_count;
    return bank;
}

// Sort the buffers for the search: first those that may live in one bank alone, then those whose second best
// bank is farthest above the best.
static void tli_banks_rank(tli_banks *b) {
    int32_t i;
    for (i = 0; i < b->count; i++) {
        uint64_t above;
        int32_t bank = tli_banks_next(b, i, 0, &above);
        bank = tli_banks_next(b, i, (uint32_t)1 << bank, &above);
        b->keys[i] = bank < 0 ? 0 : UINT64_MAX - above;
    }
    tli_sort_numbers(b->order, b->count, b->keys);
}

// Try every bank for every buffer, depth first, as far as the work goes. 1 = all were tried and every layout
// was decided: the bound is raised to the cost of the best plan. Where all were tried but some layout was not
// decided, it is raised to the least bound of these branches, if that is less.
static int tli_banks_search(tli_banks *b, uint64_t end) {
    uint64_t open = UINT64_MAX, above, sum;
    int32_t depth = 0;
    tli_banks_copy_multipliers(b, b->best_multipliers, b->multipliers);
    b->relaxed = tli_banks_relax(b);
    tli_banks_rank(b);
    tli_banks_clear(b);
    b->end = UINT64_MAX;
    b->tried[0] = 0;
    b->keys[0] = b->relaxed;        // from here on: the bound of what is above each depth
    while (b->work < end && !b->failed && b->bound < b->best_cost) {
        int32_t bank = depth < b->count ? tli_banks_next(b, b->order[depth], b->tried[depth], &above) : -1;
        int answer;
        if (depth == b->count) tli_banks_keep(b);
        if (bank < 0) {
            if (!depth) break;
            tli_banks_take(b, b->order[--depth]);
            continue;
        }
        sum = b->keys[depth] + above;
        b->tried[depth] |= (uint32_t)1 << bank;
        if ((sum + ((UINT64_C(1) << b->bits) - 1)) >> b->bits >= b->best_cost) {
            b->tried[depth] = UINT32_MAX;       // the others are dearer
            continue;
        }
        answer = tli_banks_squeeze(b, b->order[depth], bank);
        if (answer == TLI_BANKS_STOPPED && sum < open) open = sum;
        if (answer) continue;
        if (++depth == b->count) continue;
        b->tried[depth] = 0;
        b->keys[depth] = sum;
    }
    if (b->work >= end || b->failed) return 0;
    if (open != UINT64_MAX) open = (open + ((UINT64_C(1) << b->bits) - 1)) >> b->bits;
    b->bound = tli_larger_u64(b->bound, open < b->best_cost ? open : b->best_cost);
    return open == UINT64_MAX;
}

// -- banks: all together --

// Every buffer in its cheapest bank: where that fits, nothing is cheaper.
static void tli_banks_try_cheapest(tli_banks *b, uint64_t work) {
    uint64_t height;
    int32_t i, k;
    tli_banks_clear(b);
    for (i = 0; i < b->count; i++) {
        for (k = 0; k < b->bank_count && !tli_banks_may(b, i, b->by_price[k]); k++) { }
        tli_banks_put(b, i, b->by_price[k], 0);
    }
    b->bound = b->cost;
    for (k = 0; k < b->bank_count; k++)
        if (b->reach[k] && tli_banks_lay_out(b, k, -1, work, &height)) return;
    tli_banks_keep(b);
}

// One pass, and what moves make of it with a share of the work.
static void tli_banks_try(tli_banks *b, int32_t kind, int lays_out, int32_t rounds, uint64_t share) {
    uint64_t end = b->end;
    tli_banks_pass(b, kind);
    tli_banks_keep(b);
    if (b->work + share < end) b->end = b->work + share;
    tli_banks_improve(b, lays_out, rounds);
    b->end = end;
}

// Passes as anybody would write them, with pairs over each other and apart, then passes by saving and by
// multipliers.
static void tli_banks_run(tli_banks *b, uint64_t end) {
    int32_t kind, round;
    uint64_t start = b->work, share = end > start ? (end - start) / 2 : 0;
    b->end = end;
    for (kind = TLI_BANKS_LISTED; kind <= TLI_BANKS_SAVING && !b->failed; kind++)
        for (b->avoids_pairs = b->has_pairs; b->avoids_pairs >= 0; b->avoids_pairs--) {
            if (b->best_cost <= b->bound || (b->work >= end && kind)) break;
            tli_banks_try(b, kind, 0, b->avoids_pairs ? 0 : 1, share / 16);
        }
    b->avoids_pairs = 0;
    for (round = 0; round < 10 && b->count > TLI_BANKS_FEW; round++) tli_banks_raise(b);
    for (round = 0; round < TLI_BANKS_ROUNDS && b->best_cost > b->bound; round++) {
        int more = tli_banks_raise(b);
        tli_banks_try(b, TLI_BANKS_MULTIPLIER, b->count <= TLI_BANKS_FEW && round % 8 == 7, 2, share / 16);
        if (!more || b->work > start + share || b->failed) break;
    }
}

// Improve the best plan by layouts and by chance, as far as the work goes.
static void tli_banks_polish(tli_banks *b, uint64_t end) {
    tl_random random;
    random.state = 1;
    b->end = end;
    if (b->best_cost == UINT64_MAX || b->best_cost <= b->bound || b->work >= end || b->failed) return;
    tli_banks_copy_multipliers(b, b->best_multipliers, b->multipliers);
    tli_banks_relax(b);
    tli_banks_load(b);
    tli_banks_improve(b, 1, 8);
    tli_banks_load(b);
    while (b->best_cost > b->bound && b->work < end && !b->failed) tli_banks_shake(b, &random);
    tli_banks_improve(b, 1, 8);
}

// -- banks: a bank is too small --

// Ask the question anew. open: banks whose capacity is asked for: they take all, and their bytes are what is
// priced; 0 = the caller's question.
static void tli_banks_ask(tli_banks *b, uint32_t open) {
    int32_t i, k, at;
    uint64_t all = 0;
    b->asks_bytes = open != 0;
    for (k = 0; k < b->bank_count; k++) {
        b->banks[k] = b->desc->banks[k];
        if (!b->banks[k].alignment) b->banks[k].alignment = 1;
        if (!b->banks[k].capacity_bytes || open >> k & 1) b->banks[k].capacity_bytes = TLI_BANKS_OPEN;
        if (open) b->banks[k].price = open >> k & 1;
        for (at = k; at && b->banks[b->by_price[at - 1]].price > b->banks[k].price; at--)
            b->by_price[at] = b->by_price[at - 1];
        b->by_price[at] = k;
    }
    for (i = 0; i < b->count; i++) {
        const tl_layout_buffer *buffer = &b->desc->buffers[i];
        uint32_t allowed = b->desc->allowed ? b->desc->allowed[i] : 0;
        int is_pinned = buffer->is_pinned && buffer->bytes;
        uint64_t end = buffer->bytes + (is_pinned ? buffer->pinned_offset : 0), price = 0;
        b->allowed[i] = 0;
        for (k = 0; k < b->bank_count; k++) {
            if ((allowed && !(allowed >> k & 1)) || end > b->banks[k].capacity_bytes) continue;
            if (is_pinned && buffer->pinned_offset & (b->banks[k].alignment - 1)) continue;
            b->allowed[i] |= (uint32_t)1 << k;
            price = tli_larger_u64(price, tli_banks_price(b, i, k));
        }
        all += price;
    }
    b->dearest = all;
    b->penalty = TLI_BANKS_OPEN / ((uint64_t)b->count + 1);
    if (b->penalty > all + 1) b->penalty = all + 1;
    b->best_cost = UINT64_MAX;
}

// The step at which most bytes are in a bank, and how high that bank is.
static int64_t tli_banks_fullest(tli_banks *b, int32_t bank, uint64_t *height) {
    uint64_t sum = 0, most = 0;
    int32_t i, s, fullest = 0;
    tli_zero(b->fill, ((size_t)b->section_count + 1) * sizeof *b->fill);
    *height = 0;
    for (i = 0; i < b->count; i++) {
        if (b->best_bank[i] != bank || !tli_banks_bytes(b, i)) continue;
        b->fill[b->first[i]] += tli_banks_bytes(b, i);
        b->fill[b->last[i] + 1] -= tli_banks_bytes(b, i);
        *height = tli_larger_u64(*height, b->best_offset[i] + tli_banks_bytes(b, i));
    }
    for (s = 0; s < b->section_count; s++)
        if ((sum += b->fill[s]) > most) { most = sum; fullest = s; }
    return b->section_count ? b->steps[fullest] : 0;
}

// Find a plan with some banks open, and lay these out. 0 = there is none.
static int tli_banks_open(tli_banks *b, uint32_t open, uint64_t work) {
    uint64_t height;
    int32_t k;
    tli_banks_ask(b, open);
    b->end = b->work + work;
    tli_banks_try(b, TLI_BANKS_SAVING, b->count <= TLI_BANKS_FEW, 4, work / 2);
    tli_banks_try(b, TLI_BANKS_BYTES, b->count <= TLI_BANKS_FEW, 4, work);
    if (b->best_cost == UINT64_MAX || b->failed) return 0;
    tli_banks_load(b);
    for (k = 0; k < b->bank_count; k++)
        if (open >> k & 1) tli_banks_lay_out(b, k, -1, work, &height);
    tli_copy(b->best_offset, b->offset, (size_t)b->count * sizeof *b->offset);
    return !b->failed;
}

// Name the bank that lacks least, with a capacity that would do. It may turn out that none lacks any: then
// that plan is the answer.
static tl_result tli_banks_explain(tli_banks *b, int is_proven) {
    uint64_t least = UINT64_MAX, would_do = 0, height;
    int64_t step = 0, at;
    int32_t k, bank = 0;
    uint32_t all = 0;
    char text[24];
    tli_writer writer = tli_writer_of(text, sizeof text);
    tli_sentence sentence;
    tli_rule rule = is_proven ? TLI_RULE(BANK_IS_TOO_SMALL) : TLI_RULE(NO_BANKS_WERE_FOUND);
    for (k = 0; k < b->bank_count && !b->failed; k++) {
        uint64_t capacity = b->desc->banks[k].capacity_bytes;
        if (!capacity) continue;
        all |= (uint32_t)1 << k;
        if (!tli_banks_open(b, (uint32_t)1 << k, TLI_BANKS_WORK / 50)) continue;
        at = tli_banks_fullest(b, k, &height);
        if (height <= capacity) { tli_banks_ask(b, 0); tli_banks_load(b); tli_banks_keep(b); return TL_OK; }
        if (height - capacity >= least) continue;
        least = height - capacity;
        bank = k; step = at; would_do = height;
    }
    if (!would_do && !b->failed && tli_banks_open(b, all, TLI_BANKS_WORK / 50)) {
        rule = TLI_RULE(BANKS_ARE_TOO_SMALL);
        for (k = 0; k < b->bank_count; k++) {
            at = tli_banks_fullest(b, k, &height);
            if (!b->desc->banks[k].capacity_bytes || height <= b->desc->banks[k].capacity_bytes) continue;
            bank = k; step = at; would_do = height;
        }
    }
    if (b->failed) return TL_ERROR_NO_MEMORY;
    tli_put_i64(&writer, step);
    tli_finish(&writer);
    sentence = tli_begin_error(b->env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_BANKS), rule, (uint64_t)bank, would_do);
    tli_put_text(&sentence, text);
    return tli_end_error(b->env, &sentence, TL_ERROR_INFEASIBLE);
}

// -- banks: the entry --

static tl_result tli_banks_fail(const tli_banks *b, tl_result code, tli_rule rule, int32_t number) {
    return tli_fail_values(b->env, code, TLI_IN(PLAN_BANKS), rule, (uint64_t)number, 0);
}

static tl_result tli_check_banks(const tli_banks *b) {
    const tl_bank_desc *desc = b->desc;
    int32_t k;
    if (desc->buffer_count < 0 || (desc->buffer_count && !desc->buffers))
        return tli_banks_fail(b, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_COUNT_MUST_BE_AT_LEAST_0), 0);
    if (desc->bank_count < 1 || desc->bank_count > TLI_BANKS_MOST || !desc->banks)
        return tli_banks_fail(b, TL_ERROR_INVALID_ARG, TLI_RULE(BANK_COUNT_MUST_BE_1_TO_32), 0);
    for (k = 0; k < desc->bank_count; k++)
        if (desc->banks[k].alignment & (desc->banks[k].alignment - 1))
            return tli_banks_fail(b, TL_ERROR_INVALID_ARG, TLI_RULE(BANK_ALIGNMENT_IS_NO_POWER), k);
    for (k = 0; k < desc->buffer_count && desc->allowed; k++)
        if ((uint64_t)desc->allowed[k] >> desc->bank_count)
            return tli_banks_fail(b, TL_ERROR_INVALID_ARG, TLI_RULE(ALLOWED_BANKS_DO_NOT_EXIST), k);
    return TL_OK;
}

// Check sums: of bytes at the strictest alignment, and of costs.
static tl_result tli_check_bank_sums(const tli_banks *b) {
    const tl_bank_desc *desc = b->desc;
    uint64_t strictest = 1, dearest = 0, bytes = 0, cost = 0, moved;
    int32_t i;
    for (i = 0; i < desc->bank_count; i++) {
        strictest = tli_larger_u64(strictest, desc->banks[i].alignment);
        dearest = tli_larger_u64(dearest, desc->banks[i].price);
    }
    for (i = 0; i < b->count; i++)
        strictest = tli_larger_u64(strictest, desc->buffers[i].alignment);
    for (i = 0; i < b->count; i++) {
        if (strictest >> 60 || desc->buffers[i].bytes >> 61 ||
            !tli_add_u64(bytes, tli_align_up(desc->buffers[i].bytes, strictest), &bytes) || bytes >> 61)
            return tli_banks_fail(b, TL_ERROR_OVERFLOW, TLI_RULE(BUFFERS_DO_NOT_FIT_61_BITS), i);
        if (!tli_mul_u64(tli_banks_moved(b, i), dearest, &moved) || moved >> 56 || (cost += moved) >> 56)
            return tli_banks_fail(b, TL_ERROR_OVERFLOW, TLI_RULE(COST_OF_BANKS_DOES_NOT_FIT_56_BITS), i);
    }
    return TL_OK;
}

// Check that each buffer has a bank that holds it, and that of buffers that can live in one bank alone no two
// are pinned over each other in it.
static tl_result tli_check_bank_pins(tli_banks *b) {
    uint64_t height;
    int32_t i, k;
    for (i = 0; i < b->count; i++) {
        const tl_layout_buffer *buffer = &b->desc->buffers[i];
        if (b->allowed[i]) continue;
        if (buffer->is_pinned)
            return tli_banks_fail(b, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_PIN_IS_IN_NO_BANK), i);
        return tli_fail_values(b->env, TL_ERROR_INFEASIBLE, TLI_IN(PLAN_BANKS), TLI_RULE(BUFFER_FITS_NO_BANK),
                               (uint64_t)i, buffer->bytes);
    }
    for (k = 0; k < b->bank_count && b->has_pins; k++) {
        tli_banks_clear(b);
        for (i = 0; i < b->count; i++)
            if (b->desc->buffers[i].is_pinned && b->allowed[i] == (uint32_t)1 << k) b->bank[i] = (uint8_t)k;
        if (tli_banks_lay_out(b, k, -1, 1, &height) == TLI_BANKS_NEVER)
            return tli_banks_fail(b, TL_ERROR_INVALID_ARG, TLI_RULE(BUFFER_PINS_OVERLAP), 0);
    }
    return TL_OK;
}

// Divide time into sections, as a layout of all buffers does.
static tl_result tli_banks_divide(tli_banks *b) {
    tl_layout_desc desc;
    tli_layout l;
    tl_result result;
    int32_t i;
    tli_zero(&desc, sizeof desc);
    tli_zero(&l, sizeof l);
    desc.buffers = b->desc->buffers;
    desc.buffer_count = b->count;
    l.env = b->env;
    l.function = TLI_IN(PLAN_BANKS);
    l.desc = &desc;
    result = tli_layout_alloc(&l);
    if (!result) result = tli_check_layout(&l);
    for (i = 0; i < b->count && !result; i++)
        if (desc.buffers[i].gap_count)
            result = tli_fail_values(b->env, TL_ERROR_INVALID_ARG, TLI_IN(PLAN_BANKS),
                                     TLI_RULE(BUFFER_IN_BANKS_HAS_GAPS), (uint64_t)i, 0);
    if (!result) result = tli_layout_alloc_sections(&l);
    if (!result) {
        tli_layout_divide(&l);
        b->section_count = l.section_count;
        for (i = 0; i < l.section_count; i++) b->steps[i] = (int64_t)(l.times[i] ^ (uint64_t)1 << 63);
    }
    for (i = 0; i < b->count && !result; i++) {
        const tl_layout_buffer *buffer = &b->desc->buffers[i];
        b->first[i] = buffer->bytes ? tli_layout_first(&l, buffer->first_step) : -1;
        b->last[i] = buffer->bytes ? tli_layout_last(&l, buffer->last_step) : -1;
        b->has_pins |= buffer->is_pinned && buffer->bytes;
        b->has_pairs |= buffer->in_place != 0;
        b->keys[i] = (uint64_t)b->first[i] + 1;
    }
    tli_layout_free(&l);
    if (result) return result;
    tli_sort_numbers(b->by_first, b->count, b->keys);
    for (i = 0; i < b->count; i++) b->position[b->by_first[i]] = i;
    return TL_OK;
}

static tl_result tli_banks_alloc(tli_banks *b) {
    uint64_t count = (uint64_t)b->count;
    b->allowed = (uint32_t *)tli_alloc_array(b->env, count, sizeof *b->allowed);
    b->tried = (uint32_t *)tli_alloc_array(b->env, count, sizeof *b->tried);
    b->first = (int32_t *)tli_alloc_array(b->env, 10 * count, sizeof *b->first);
    b->steps = (int64_t *)tli_alloc_array(b->env, count, sizeof *b->steps);
    b->bank = (uint8_t *)tli_alloc_array(b->env, 2 * count, 1);
    b->offset = (uint64_t *)tli_alloc_array(b->env, 5 * count + 1, sizeof *b->offset);
    b->members = (tl_layout_buffer *)tli_alloc_array(b->env, count, sizeof *b->members);
    if (!b->allowed || !b->tried || !b->first || !b->steps || !b->bank || !b->offset || !b->members)
        return TL_ERROR_NO_MEMORY;
    b->last = b->first + b->count;
    b->by_first = b->last + b->count;
    b->position = b->by_first + b->count;
    b->near_ids = b->position + b->count;
    b->near_order = b->near_ids + b->count;
    b->order = b->near_order + b->count;
    b->member_ids = b->order + b->count;
    b->number_of = b->member_ids + b->count;
    b->slot = b->number_of + b->count;
    b->best_bank = b->bank + b->count;
    b->best_offset = b->offset + b->count;
    b->near_keys = b->best_offset + b->count;
    b->keys = b->near_keys + b->count;
    b->fill = b->keys + b->count;
    return TL_OK;
}

// Trees and multipliers, of which the size is known when time is divided.
static tl_result tli_banks_alloc_banks(tli_banks *b) {
    uint64_t sections = (uint64_t)b->section_count + 1;
    int32_t k;
    for (b->section_leaves = 1; b->section_leaves < b->section_count; b->section_leaves *= 2) { }
    for (b->leaf_count = 1; b->leaf_count < b->count; b->leaf_count *= 2) { }
    for (k = 0; k < b->bank_count; k++) {
        if (!b->desc->banks[k].capacity_bytes && !b->has_pins) continue;
        b->reach[k] = (int32_t *)tli_alloc_array(b->env, 2 * (uint64_t)b->leaf_count + (uint64_t)b->count,
                                                 sizeof *b->reach[k]);
        if (!b->reach[k]) return TL_ERROR_NO_MEMORY;
        b->by_offset[k] = b->reach[k] + 2 * b->leaf_count;
        b->fullest[k] = (int64_t *)tli_alloc_array(b->env, 3 * (uint64_t)b->section_leaves,
                                                   sizeof *b->fullest[k]);
        if (!b->fullest[k]) return TL_ERROR_NO_MEMORY;
        b->added[k] = b->fullest[k] + 2 * b->section_leaves;
        if (!b->desc->banks[k].capacity_bytes) continue;
        b->multipliers[k] = (uint64_t *)tli_alloc_array(b->env, 4 * sections, sizeof *b->multipliers[k]);
        if (!b->multipliers[k]) return TL_ERROR_NO_MEMORY;
        b->sums[k] = b->multipliers[k] + sections;
        b->used[k] = b->sums[k] + sections;
        b->best_multipliers[k] = b->used[k] + sections;
    }
    return TL_OK;
}

static void tli_banks_free(tli_banks *b) {
    int32_t k;
    tli_release(b->env, b->allowed);
    tli_release(b->env, b->tried);
    tli_release(b->env, b->first);
    tli_release(b->env, b->steps);
    tli_release(b->env, b->bank);
    tli_release(b->env, b->offset);
    tli_release(b->env, b->members);
    for (k = 0; k < TLI_BANKS_MOST; k++) {
        tli_release(b->env, b->reach[k]);
        tli_release(b->env, b->fullest[k]);
        tli_release(b->env, b->multipliers[k]);
    }
}

// Lay each bank out once more, as low as the work goes, and write the plan.
static tl_result tli_banks_answer(tli_banks *b, uint64_t work_limit, tl_bank_plan *plan) {
    uint64_t count = (uint64_t)b->count, banks = (uint64_t)b->bank_count;
    uint64_t left = b->work < work_limit ? (work_limit - b->work) / banks / 8 + 1 : 1, before, height;
    int32_t i, k;
    tli_banks_load(b);
    for (k = 0; k < b->bank_count; k++) {
        int answer;
        tli_banks_fullest(b, k, &before);
        answer = tli_banks_lay_out(b, k, -1, left, &height);
        if (b->failed) return TL_ERROR_NO_MEMORY;
        for (i = 0; i < b->count && (answer || (b->reach[k] && height > before)); i++)
            if (b->bank[i] == k) b->offset[i] = b->best_offset[i];
    }
    plan->offsets = (uint64_t *)tli_alloc_array(b->env, count + banks + (count + 1) / 2, sizeof *plan->offsets);
    if (!plan->offsets) return TL_ERROR_NO_MEMORY;
    plan->heights = plan->offsets + b->count;
    plan->banks = (int32_t *)(void *)(plan->heights + b->bank_count);
    plan->buffer_count = b->count;
    plan->bank_count = b->bank_count;
    for (i = 0; i < b->count; i++) {
        uint64_t bytes = tli_banks_bytes(b, i), *top = &plan->heights[b->bank[i]];
        plan->banks[i] = b->bank[i];
        plan->offsets[i] = bytes ? b->offset[i] : 0;
        if (bytes) *top = tli_larger_u64(*top, b->offset[i] + bytes);
    }
    plan->cost = b->best_cost;
    plan->bound_cost = b->bound < b->best_cost ? b->bound : b->best_cost;
    plan->proven = plan->bound_cost == plan->cost;
    plan->work = b->work;
    return TL_OK;
}

static tl_result tli_banks_plan(tli_banks *b, tl_bank_plan *plan) {
    uint64_t limit = b->desc->work_limit ? b->desc->work_limit : TLI_BANKS_WORK + 20000 * (uint64_t)b->count;
    int is_proven = 0;
    tl_result result = tli_banks_divide(b);
    if (!result) result = tli_check_bank_sums(b);
    if (!result) result = tli_banks_alloc_banks(b);
    if (result) return result;
    tli_banks_ask(b, 0);
    b->bits = tli_log2_u64(b->dearest + 1) > 35 ? 59 - tli_log2_u64(b->dearest + 1) : 24;
    result = tli_check_bank_pins(b);
    if (result) return result;
    tli_banks_try_cheapest(b, limit / 16 + 1);
    tli_banks_run(b, limit / 8 * (b->count > TLI_BANKS_FEW ? 6 : 3) + 1);
    if (b->best_cost > b->bound && !b->failed && b->count <= TLI_BANKS_FEW)
        is_proven = tli_banks_search(b, limit / 8 * 5 + 1);
    tli_banks_polish(b, limit / 8 * 7 + 1);
    is_proven |= b->bound > b->dearest;
    if (b->best_cost == UINT64_MAX && !b->failed) {
        result = tli_banks_explain(b, is_proven);
        if (result) return result;
        tli_banks_polish(b, b->work + limit / 8);
    }
    return b->failed ? TL_ERROR_NO_MEMORY : tli_banks_answer(b, limit, plan);
}

TLI_IMPL tl_result tl_plan_banks(tl_env *env, const tl_bank_desc *desc, tl_bank_plan *plan) {
    tli_banks b;
    tl_result result;
    TL_ASSERT(desc && plan);
    tli_zero(plan, sizeof *plan);
    tli_zero(&b, sizeof b);
    b.env = env;
    b.desc = desc;
    if (env) {
        b.silent.alloc = env->alloc;
        b.silent.release = env->release;
        b.silent.user = env->user;
    }
    b.count = desc->buffer_count;
    b.bank_count = desc->bank_count;
    result = tli_check_banks(&b);
    if (result) return result;
    result = tli_banks_alloc(&b);
    if (!result) result = tli_banks_plan(&b, plan);
    if (result == TL_ERROR_NO_MEMORY) {
        tl_free_bank_plan(env, plan);
        result = tli_fail(env, result, TLI_IN(PLAN_BANKS), TLI_RULE(NO_MEMORY_FOR_BANKS));
    }
    tli_banks_free(&b);
    return result;
}

TLI_IMPL void tl_free_bank_plan(tl_env *env, tl_bank_plan *plan) {
    TL_ASSERT(plan);
    tli_release(env, plan->offsets);
    tli_zero(plan, sizeof *plan);
}
#endif  // TL_NO_PLANNERS
#endif  // TL_STRATEGY_IMPLEMENTATION
