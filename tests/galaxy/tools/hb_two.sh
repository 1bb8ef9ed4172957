# Beside its tool: writes one input behind the other, as its settings say.
if [ "$1" = --version ]; then
  echo "two 7"
  exit
fi
. "$1"
cat "$first" "$second" > "$out"
printf '%s\n' "$PWD" "$first" "$0" > "$where"
env >> "$where"
