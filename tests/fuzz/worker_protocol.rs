//! Messages between server and workers: any bytes are a message or none, and a message survives the way there and back.

use indelible::worker::protocol::{FromWorker, Order, ToWorker, body_length, decode, encode};

fn there_and_back<T: serde::Serialize + serde::de::DeserializeOwned + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(message) = decode::<T>(bytes) else { return };
    let mut frame = Vec::new();
    encode(&message, &mut frame).expect("what was read can be written");
    let (head, body) = frame.split_first_chunk::<4>().expect("a frame has a head");
    assert_eq!(body_length(*head), Ok(body.len()));
    let again: T = decode(body).expect("what was written can be read");
    // By their text: a number that is none is not equal to itself.
    assert_eq!(format!("{message:?}"), format!("{again:?}"));
}

pub(crate) fn run(data: &[u8]) {
    if let Some((head, _)) = data.split_first_chunk::<4>() {
        let _ = body_length(*head);
    }
    there_and_back::<Order>(data);
    there_and_back::<ToWorker>(data);
    there_and_back::<FromWorker>(data);
}
