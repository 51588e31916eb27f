"""Our tokenizers beside Hugging Face's and sentencepiece on one text, one thread each, in one run.

    tokenizer_compare.py build/.../tokenizer_bench TEXT VOCABULARY.gguf ...    (needs tests/golden/requirements.txt)
"""
import json
import os
import pathlib
import subprocess
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "golden"))
import make_tokenizers  # noqa: E402


def oracle_speed(encode, text, rounds=5):
    """MB/s of the best of some rounds, and the number of tokens."""
    best, tokens = 1e9, 0
    for _ in range(rounds):
        start = time.process_time()
        tokens = len(encode(text))
        best = min(best, time.process_time() - start)
    return len(text.encode()) / best / 1e6, tokens


def main():
    program, text_path, *vocabularies = sys.argv[1:]
    text = pathlib.Path(text_path).read_bytes().decode()
    for path in vocabularies:
        out = subprocess.run([program, text_path, path, "--benchmark_format=json", "--benchmark_filter=encode|load"], check=True,
                             capture_output=True).stdout
        encode, load = json.loads(out)["benchmarks"]
        ours = len(text.encode()) / (encode["cpu_time"] / 1e3) / 1e6
        theirs, tokens = oracle_speed(make_tokenizers.Vocabulary(path).encoder(), text)
        print(f"{pathlib.Path(path).name}: ours {ours:.1f} MB/s ({encode['tokens']:.0f} tokens, made in {load['cpu_time']:.1f} ms), "
              f"oracle {theirs:.1f} MB/s ({tokens} tokens): {ours / theirs:.1f} times", flush=True)


if __name__ == "__main__":
    main()
