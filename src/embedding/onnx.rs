//! A sentence model in ONNX (<https://onnx.ai>), run by rten on the processor.
//!
//! What such models have in common: token ids, their mask and their segment go in; a vector for each token comes out,
//! and their mean is the text's, or one vector for the text already. Anything else is refused when it is loaded.

use crate::error::{ErrorCode, StartError, ToolError};
use crate::state::Outcome;
use crate::state::memory::Embedder;
use rten::{Model, NodeId, ValueOrView};
use rten_tensor::prelude::*;
use rten_tensor::{NdTensor, Tensor};
use sha2::{Digest, Sha256};
use std::path::Path;
use tokenizers::{Encoding, Tokenizer, TruncationParams};

/// Tokens of a text that count; most sentence models were made for 256 to 512.
const MOST_TOKENS: usize = 256;

/// A model and its tokenizer.
pub(super) struct Onnx {
    name: String,
    model: Model,
    tokenizer: Tokenizer,
    inputs: Vec<(NodeId, Input)>,
    output: NodeId,
}

/// What a model asks for.
#[derive(Clone, Copy)]
enum Input {
    Ids,
    Mask,
    Segments,
}

impl Onnx {
    pub(super) fn load(folder: &Path) -> Result<Self, StartError> {
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read(&path).map_err(|error| {
                StartError::usage(format!(
                    "cannot read `{}`: {error}; --embedding-model takes a folder with model.onnx and tokenizer.json",
                    path.display()
                ))
            })
        };
        let refused = |name: &str, why: String| {
            StartError::usage(format!("cannot use `{}`: {why}", folder.join(name).display()))
        };
        let (model, tokenizer) = (read("model.onnx")?, read("tokenizer.json")?);
        let digest = Sha256::new().chain_update(&model).chain_update(&tokenizer).finalize();
        let name = crate::render::hex(&digest);
        let mut tokenizer =
            Tokenizer::from_bytes(&tokenizer).map_err(|why| refused("tokenizer.json", why.to_string()))?;
        let truncation = TruncationParams { max_length: MOST_TOKENS, ..TruncationParams::default() };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(|why| refused("tokenizer.json", why.to_string()))?
            .with_padding(None);
        let model = Model::load(model).map_err(|why| refused("model.onnx", why.to_string()))?;
        let mut inputs = Vec::new();
        for id in model.input_ids() {
            let input =
                model.node_info(*id).and_then(|node| node.name().map(str::to_owned)).unwrap_or_default();
            let known = match input.as_str() {
                "input_ids" => Input::Ids,
                "attention_mask" => Input::Mask,
                "token_type_ids" => Input::Segments,
                other => {
                    let why = format!(
                        "it asks for `{other}`; a sentence model asks for input_ids, attention_mask and token_type_ids"
                    );
                    return Err(refused("model.onnx", why));
                }
            };
            inputs.push((*id, known));
        }
        let output = *model
            .output_ids()
            .first()
            .ok_or_else(|| refused("model.onnx", "it has no output".to_owned()))?;
        let loaded = Self { name, model, tokenizer, inputs, output };
        // What it makes of a text shows only when it does.
        loaded.vector("a text").map_err(|why| refused("model.onnx", why))?;
        Ok(loaded)
    }

    fn vector(&self, text: &str) -> Result<Vec<f32>, String> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(|why| why.to_string())?;
        let inputs = self
            .inputs
            .iter()
            .map(|(id, input)| Ok((*id, ValueOrView::from(numbers(&encoding, *input)?))))
            .collect::<Result<Vec<_>, String>>()?;
        let outputs = self.model.run(inputs, &[self.output], None).map_err(|why| why.to_string())?;
        let output = outputs.into_iter().next().ok_or("it gave no output")?;
        let output: Tensor<f32> = output.try_into().map_err(|_| "its output is no list of numbers")?;
        let shape = output.shape().to_vec();
        let width = match shape.as_slice() {
            [1, width] => *width,
            [1, tokens, width] if *tokens == encoding.get_ids().len() => *width,
            other => return Err(format!("its output has the shape {other:?}")),
        };
        let all = output.to_vec();
        if width == 0 || all.iter().any(|number| !number.is_finite()) {
            return Err("its output is no vector".to_owned());
        }
        // Without padding every token counts, so the mean over all is the mean over the mask.
        let mut mean = vec![0.0_f32; width];
        for token in all.chunks_exact(width) {
            mean.iter_mut().zip(token).for_each(|(sum, part)| *sum += part);
        }
        let length = mean.iter().map(|part| part * part).sum::<f32>().sqrt();
        if length > 0.0 {
            mean.iter_mut().for_each(|part| *part /= length);
        }
        Ok(mean)
    }
}

impl Embedder for Onnx {
    fn model(&self) -> &str {
        &self.name
    }

    fn embed(&self, texts: &[String]) -> Outcome<Vec<Vec<f32>>> {
        let vector = |text: &String| {
            self.vector(text).map_err(|why| {
                ToolError::new(
                    ErrorCode::SqlError,
                    format!(
                        "the embedding model cannot be run: {why}; a person can start the server without it"
                    ),
                )
            })
        };
        texts.iter().map(vector).collect()
    }
}

/// One input: a row of whole numbers.
fn numbers(encoding: &Encoding, input: Input) -> Result<NdTensor<i32, 2>, String> {
    let given = match input {
        Input::Ids => encoding.get_ids(),
        Input::Mask => encoding.get_attention_mask(),
        Input::Segments => encoding.get_type_ids(),
    };
    let numbers: Vec<i32> = given
        .iter()
        .map(|number| i32::try_from(*number).map_err(|_| "a token's number is too large".to_owned()))
        .collect::<Result<_, _>>()?;
    Ok(NdTensor::from_data([1, numbers.len()], numbers))
}
