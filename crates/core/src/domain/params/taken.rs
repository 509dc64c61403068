//! Converts an output to the value of a parameter.

use crate::domain::job::ParamType;
use crate::domain::value::ValueType;

/// The text with which a parameter of this type takes an output, or why it cannot. Outputs printed
/// by a script, or stored by an earlier version, have no type.
pub(super) fn text_for(
    ty: ParamType,
    found: Option<ValueType>,
    text: String,
) -> Result<String, String> {
    match (ty, found) {
        (ParamType::Bytes, None | Some(ValueType::Bytes)) => Ok(text),
        (ParamType::Bytes, Some(other)) => {
            Err(format!("it is of type {other}, and a parameter of type bytes takes bytes alone"))
        }
        (_, Some(ValueType::Bytes)) => {
            Err("it is bytes; declare the parameter type: bytes".to_owned())
        }
        (ParamType::Bool, None | Some(ValueType::Bool | ValueType::Int | ValueType::Text)) => {
            Ok(match text.as_str() {
                "1" | "t" => "true".to_owned(),
                "0" | "f" => "false".to_owned(),
                _ => text,
            })
        }
        (_, _) => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_takes_values_of_its_type() {
        use ParamType as P;
        use ValueType as V;
        for (ty, found, text, expected) in [
            (P::Bool, Some(V::Int), "1", Ok("true")),
            (P::Bool, Some(V::Bool), "false", Ok("false")),
            (P::Bool, None, "t", Ok("true")),
            (P::Bool, Some(V::Text), "yes", Ok("yes")),
            (P::Bytes, Some(V::Bytes), "0x00", Ok("0x00")),
            (P::Bytes, None, "base64:AA==", Ok("base64:AA==")),
            (P::Bytes, Some(V::Text), "0x00", Err("it is of type text")),
            (P::Text, Some(V::Bytes), "0x00", Err("declare the parameter type: bytes")),
            (P::Text, Some(V::Interval), "1 day", Ok("1 day")),
            (P::Int, Some(V::Decimal), "5.00", Ok("5.00")),
        ] {
            match (text_for(ty, found, text.to_owned()), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(said), Err(expected)) => assert!(said.contains(expected), "{said}"),
                (found, expected) => panic!("{found:?}, not {expected:?}"),
            }
        }
    }
}
