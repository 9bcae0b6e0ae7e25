# What scripts that run images on the board share (qemu-system-arm, mps2-an386); they set `who` and source this.
# Without the tools they end here: SKIPPED, which is a failure where STRICT is 1.
fail() { echo "$who: $*" >&2; exit 1; }
for tool in arm-none-eabi-gcc qemu-system-arm; do
    if ! command -v $tool >/dev/null; then
        echo "SKIPPED $who: no $tool (make deps)"
        [ "${STRICT:-0}" != 1 ] || exit 1
        exit 0
    fi
done

# Run an image, an instruction a nanosecond:  emulate FILE.elf
emulate() {
    timeout 600 qemu-system-arm -machine mps2-an386 -nographic -monitor none -serial none -icount shift=0 \
        -semihosting-config enable=on,target=native -kernel "$1" 2>&1
}
