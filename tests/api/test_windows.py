"""A model some of whose layers see a window: how its cache is sized, and what the server tells of it."""
from conftest import ROOT

MODEL = ROOT / "tests/golden/tiny/gemma3.gguf"  # a window of 16 positions: up to 3 blocks a sequence; a context of 512


def test_blocks_of_windows_follow_the_token_budget(start_server):
    for budget in (16, 256, 1024):
        server = start_server("--kv-memory", "4M", "--token-budget", str(budget), model=MODEL, context=512)
        try:
            health = server.get("/health")
            everything, windowed = health["blocks_total"], health["window_blocks_total"]
            assert windowed == max(everything * 3 // 12, 3 + budget // 16)
            assert health["blocks_free"] == everything and health["window_blocks_free"] == windowed
            # In f16: one layer of 7 in a block, six in one of a window.
            assert 0.99 < (everything * 4096 + windowed * 6 * 4096) / 2**22 <= 1
            metrics = server.text("/metrics")
            assert f'num_gpu_blocks="{everything}",num_window_blocks="{windowed}"' in metrics
            assert f'unisono:kv_blocks_free{{layers="window",model_name="{MODEL.stem}"}} {windowed}\n' in metrics
        finally:
            assert server.stop() == 0
