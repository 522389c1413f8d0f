#!/usr/bin/env python3
"""Makes the golden adapters in golden_peft/, and judges exported ones, with Hugging Face's PEFT.

    pip install torch transformers peft
    python3 make_peft_golden.py                      # writes golden_peft/<model>/
    python3 make_peft_golden.py --judge GOLDEN DIR   # does PEFT load and merge the adapters in DIR?

The adapters fine-tune golden models of make_golden.py, have random numbers, and are saved by PEFT.
expected.json beside them has the ids of a prompt and the logits after each of them, in fp32.
"""

import json
import pathlib
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM

FOLDER = pathlib.Path(__file__).resolve().parent
PROMPT = 9
VOCAB = 40
# Name: the products with adapters.
ADAPTED = {"gpt2": ["c_attn", "attn.c_proj", "c_fc", "mlp.c_proj"],
           "llama3": ["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"]}


def base_of(name):
    return AutoModelForCausalLM.from_pretrained(FOLDER / "golden" / name, dtype=torch.float32)


def logits_of(model, ids):
    with torch.no_grad():
        return model.eval()(input_ids=torch.tensor([ids])).logits[0]


def make(name):
    torch.manual_seed(len(name))
    model = get_peft_model(base_of(name), LoraConfig(
        r=3, lora_alpha=6, target_modules=ADAPTED[name], fan_in_fan_out=name == "gpt2",
        task_type="CAUSAL_LM"))
    with torch.no_grad():  # B starts as zeros
        for key, value in model.named_parameters():
            if "lora_" in key:
                value.copy_(0.2 * torch.randn(value.shape))
    folder = FOLDER / "golden_peft" / name
    model.save_pretrained(folder)
    (folder / "README.md").unlink(missing_ok=True)
    (folder / "adapter_model.safetensors").chmod(0o644)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["base_model_name_or_path"] = None  # a path of this machine
    (folder / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
    ids = [(7 * i * i + 3 * i + 5) % VOCAB for i in range(PROMPT)]
    expected = {"ids": ids, "logits": [[round(x, 8) for x in row] for row in
                                       logits_of(model, ids).tolist()]}
    (folder / "expected.json").write_text(json.dumps(expected) + "\n")


def judge(golden, exported):
    expected = json.loads((FOLDER / "golden_peft" / golden / "expected.json").read_text())
    model = PeftModel.from_pretrained(base_of(golden), exported)
    for what in ("loaded", "merged"):
        difference = (logits_of(model, expected["ids"]) -
                      torch.tensor(expected["logits"])).abs().max()
        print(f"{golden}, {what}: largest difference {float(difference):.2g}")
        if difference > 1e-5:
            return 1
        model = model.merge_and_unload() if what == "loaded" else model
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--judge"]:
        sys.exit(judge(*sys.argv[2:]))
    for each in ADAPTED:
        make(each)
