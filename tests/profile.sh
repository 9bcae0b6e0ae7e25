#!/usr/bin/env bash
# Run a program that clang instrumented, and keep its counters apart from those of others:  tests/profile.sh PROGRAM ARGUMENTS...
# They go to PROGRAM.profiles/, a file for each process and each image (the program, the library of the parts).
exec env LLVM_PROFILE_FILE="$1.profiles/%p-%m.profraw" "$@"
