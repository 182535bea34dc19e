-- typed: nothing is written if a key is not ours.
all_ours()
