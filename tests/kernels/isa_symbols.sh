#!/bin/sh
# isa_symbols.sh ISA OBJECT...: fails if an object compiled for ISA exports or shares (weak) a
# function that does not live in trireme::cpu::ISA. The linker keeps one copy of a shared function:
# if it kept that of the richest instruction set, a plain processor would stop with SIGILL.
isa=$1
shift
functions=$(nm --demangle --defined-only "$@" | sed -nE 's/^[0-9a-f]+ [TWVui] //p')
if [ -z "$functions" ]; then
  echo "no symbols found in: $*" >&2
  exit 1
fi
strangers=$(echo "$functions" |
  grep -v -e "trireme::cpu::$isa::" -e 'DW.ref.__gxx_personality_v0')
if [ -n "$strangers" ]; then
  echo "functions outside trireme::cpu::$isa:" >&2
  echo "$strangers" >&2
  exit 1
fi
