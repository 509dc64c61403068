//! A reader of XML documents without a document type of their own: elements with attributes, text, CDATA, comments. Entities
//! are the five of XML and numbers; a DOCTYPE is passed over, so that nothing is ever expanded or fetched.

use crate::import::note::ImportOrigin;

/// Most elements within one another.
const DEEPEST: usize = 64;

/// An element where it stood.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct XmlElement {
    pub(crate) at: ImportOrigin,
    pub(crate) name: String,
    /// In their order.
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) children: Vec<XmlElement>,
    /// All text directly within it.
    pub(crate) text: String,
}

impl XmlElement {
    /// The value of an attribute; of an empty one nothing.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        let found = self.attributes.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        found.map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Children of this name.
    pub(crate) fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a XmlElement> {
        self.children.iter().filter(move |child| child.name == name)
    }
}

/// Why a text is no XML, and in which line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct XmlFault {
    pub(crate) line: u64,
    pub(crate) what: String,
}

/// Reads a document: its outermost element.
pub(crate) fn read_xml(file: &str, text: &str) -> Result<XmlElement, XmlFault> {
    let mut reader = XmlReader { file, rest: text, line: 1 };
    let mut open: Vec<XmlElement> = Vec::new();
    let mut root = None;
    loop {
        let before = reader.take_until('<');
        match open.last_mut() {
            Some(element) => element.text.push_str(&reader.decoded(before)?),
            None if before.trim().is_empty() => {}
            None => return Err(reader.fault("there is text outside of the outermost element")),
        }
        if reader.rest.is_empty() {
            break;
        }
        if let Some(cdata) = reader.between("<![CDATA[", "]]>")? {
            let fault = reader.fault("there is text outside of the outermost element");
            open.last_mut().ok_or(fault)?.text.push_str(cdata);
        } else if reader.between("<!--", "-->")?.is_none()
            && reader.between("<?", "?>")?.is_none()
            && !reader.skip_doctype()?
        {
            if reader.rest.starts_with("</") {
                let name = reader.between("</", ">")?.unwrap_or_default().trim();
                let Some(element) = open.pop() else {
                    return Err(reader.fault(format!("</{name}> closes nothing")));
                };
                if element.name != name {
                    return Err(reader.fault(format!(
                        "</{name}> closes <{}> of line {}",
                        element.name, element.at.line
                    )));
                }
                close(element, &mut open, &mut root, &reader)?;
            } else {
                let (element, is_closed) = reader.start_tag()?;
                if open.len() >= DEEPEST {
                    return Err(
                        reader.fault(format!("more than {DEEPEST} elements within one another"))
                    );
                }
                if is_closed {
                    close(element, &mut open, &mut root, &reader)?;
                } else {
                    open.push(element);
                }
            }
        }
    }
    if let Some(element) = open.last() {
        return Err(
            reader.fault(format!("it ends within <{}> of line {}", element.name, element.at.line))
        );
    }
    root.ok_or_else(|| reader.fault("there is no element"))
}

fn close(
    element: XmlElement,
    open: &mut [XmlElement],
    root: &mut Option<XmlElement>,
    reader: &XmlReader<'_>,
) -> Result<(), XmlFault> {
    match open.last_mut() {
        Some(parent) => parent.children.push(element),
        None if root.is_none() => *root = Some(element),
        None => return Err(reader.fault("there is a second outermost element")),
    }
    Ok(())
}

struct XmlReader<'a> {
    file: &'a str,
    rest: &'a str,
    line: u64,
}

impl<'a> XmlReader<'a> {
    fn fault(&self, what: impl Into<String>) -> XmlFault {
        XmlFault { line: self.line, what: what.into() }
    }

    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.bytes().filter(|byte| *byte == b'\n').count() as u64;
        self.rest = rest;
        taken
    }

    fn take_until(&mut self, mark: char) -> &'a str {
        let end = self.rest.find(mark).unwrap_or(self.rest.len());
        self.advance(end)
    }

    /// What stands between two marks; none where the first does not stand here.
    fn between(&mut self, first: &str, last: &str) -> Result<Option<&'a str>, XmlFault> {
        if !self.rest.starts_with(first) {
            return Ok(None);
        }
        let Some(end) = self.rest[first.len()..].find(last) else {
            return Err(self.fault(format!("{first} has no {last}")));
        };
        self.advance(first.len());
        let inside = self.advance(end);
        self.advance(last.len());
        Ok(Some(inside))
    }

    fn skip_doctype(&mut self) -> Result<bool, XmlFault> {
        if !self.rest.starts_with("<!") {
            return Ok(false);
        }
        let close = self.rest.find('>').ok_or_else(|| self.fault("<! has no >"))?;
        if self.rest[..close].contains('[') {
            return Err(self.fault("it has a document type of its own, which is not read"));
        }
        self.advance(close + 1);
        Ok(true)
    }

    /// `<NAME KEY="VALUE" …>` or `<NAME … />`, and whether it is closed.
    fn start_tag(&mut self) -> Result<(XmlElement, bool), XmlFault> {
        let at = ImportOrigin::new(self.file, self.line);
        self.advance(1);
        let name = self.name()?;
        let mut element = XmlElement { at, name, ..XmlElement::default() };
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if self.rest.starts_with("/>") {
                self.advance(2);
                return Ok((element, true));
            }
            if self.rest.starts_with('>') {
                self.advance(1);
                return Ok((element, false));
            }
            let key = self.name()?;
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with('=') {
                return Err(self.fault(format!("attribute {key} has no value")));
            }
            self.advance(1);
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            let quote = match self.rest.chars().next() {
                Some(quote @ ('"' | '\'')) => quote.to_string(),
                _ => return Err(self.fault(format!("the value of {key} has no quotes"))),
            };
            let value = self.between(&quote, &quote)?.unwrap_or_default();
            let value = self.decoded(value)?;
            if element.attributes.iter().any(|(known, _)| *known == key) {
                return Err(self.fault(format!("attribute {key} is there twice")));
            }
            element.attributes.push((key, value));
        }
    }

    fn name(&mut self) -> Result<String, XmlFault> {
        let is_name = |c: char| c.is_alphanumeric() || "_-.:".contains(c);
        let end = self.rest.find(|c| !is_name(c)).unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.fault("a name is missing"));
        }
        Ok(self.advance(end).to_owned())
    }

    /// Text with its entities replaced.
    fn decoded(&self, text: &str) -> Result<String, XmlFault> {
        let mut made = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            made.push_str(&rest[..at]);
            let end = rest[at..].find(';').map(|end| at + end);
            let Some(end) = end else { return Err(self.fault("& begins no entity")) };
            let name = &rest[at + 1..end];
            let number = name.strip_prefix('#').map(|number| match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            });
            let found = match (name, number) {
                ("amp", _) => Some('&'),
                ("lt", _) => Some('<'),
                ("gt", _) => Some('>'),
                ("quot", _) => Some('"'),
                ("apos", _) => Some('\''),
                (_, Some(Ok(number))) => char::from_u32(number),
                _ => None,
            };
            let Some(c) = found else {
                let name: String = name.chars().take(30).collect();
                return Err(self.fault(format!("&{name}; is no entity that is known")));
            };
            made.push(c);
            rest = &rest[end + 1..];
        }
        made.push_str(rest);
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_elements() {
        let text = "<?xml version='1.0'?>\n<!DOCTYPE a>\n<a x=\"1 &amp; 2\" y='&#65;&#x4E2D;'>\n<!-- no -->\n<b/>t<![CDATA[<&>]]>\n\
                    <b k = \"v\">u</b></a>\n";
        let root = read_xml("f.xml", text).unwrap_or_else(|fault| panic!("{fault:?}"));
        assert_eq!((root.attribute("x"), root.attribute("y")), (Some("1 & 2"), Some("A中")));
        assert_eq!(root.text.trim(), "t<&>");
        let children: Vec<(u64, &str)> =
            root.named("b").map(|b| (b.at.line, b.text.as_str())).collect();
        assert_eq!(children, [(5, ""), (6, "u")]);
    }

    #[test]
    fn what_is_none_is_refused_with_its_line() {
        for (text, line, what) in [
            ("", 1, "no element"),
            ("x", 1, "text outside"),
            ("<a>\n<b>\n</a>", 3, "</a> closes <b> of line 2"),
            ("<a>\n", 2, "it ends within <a>"),
            ("</a>", 1, "closes nothing"),
            ("<a/><b/>", 1, "second outermost"),
            ("<a b/>", 1, "attribute b has no value"),
            ("<a b=1/>", 1, "no quotes"),
            ("<a b='1' b='2'/>", 1, "twice"),
            ("<a>&nbsp;</a>", 1, "&nbsp; is no entity"),
            ("<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", 1, "document type of its own"),
            ("<a><!-- </a>", 1, "has no -->"),
            ("<", 1, "a name is missing"),
        ] {
            let fault = read_xml("f", text).expect_err(text);
            assert_eq!(fault.line, line, "{text}: {fault:?}");
            assert!(fault.what.contains(what), "{text}: {fault:?}");
        }
        let deep = "<a>".repeat(70);
        assert!(read_xml("f", &deep).is_err_and(|fault| fault.what.contains("within one another")));
    }
}
