#!/usr/bin/env python3
"""Declare the rows of a language model's graph whose nodes have none: .tlg in, .tlg 2 out.

    python3 tests/declare_rows.py gpt2.tlg --tokens 8192 --heads 12 [--batch 8] > gpt2_rows.tlg

Every node is by tokens but for split attention, which is by batch, head and query, and the loss, which adds up
over tokens. Weights are no inputs in these graphs, so there is nothing whole but keys and values.
"""
import argparse
import re


def declare(lines, tokens, queries, batch):
    """The lines with rows, and with a batch that can be split."""
    ops = {}
    made = []
    for line in lines:
        if line.startswith("tlg"):
            line = "tlg 2\n" + (f"batch {batch}\n" if batch else "")
        if line.startswith("node"):
            words = line.split()
            inputs = [] if words[-1] == "in=-" else re.search(r" in=(\S+)", line).group(1).split(",")
            op = words[3]
            ops[words[1]] = op
            relations = ["1:1"] * len(inputs)
            rows, axis, more = tokens, 0, ""
            if op in ("bmm", "softmax"):
                rows, axis = queries, 1
                relations = ["1:1" if ops[i.split(".")[0]] == "softmax" or op == "softmax" else "part"
                             for i in inputs]
            if op == "attention":
                made.append(line)
                continue
            if op in ("loss", "linear", "bmm", "layernorm", "rmsnorm", "embedding"):
                more = " ordered"
            if op == "loss":
                more += " reduces"
            line = line.rstrip("\n") + f" rows={rows}@{axis}"
            line += (" rin=" + ",".join(relations) if relations else "") + more + "\n"
        made.append(line)
    made.append(f"end {len(ops)}\n")
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("graph")
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--heads", type=int, default=1)
    parser.add_argument("--batch", type=int, default=0)
    arguments = parser.parse_args()
    with open(arguments.graph, encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("end")]
    print("".join(declare(lines, arguments.tokens, arguments.tokens * arguments.heads, arguments.batch)), end="")


if __name__ == "__main__":
    main()
