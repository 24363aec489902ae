//! The parser: one pass over the tokens, no tokens kept, names resolved on the way.
//!
//! Invariants: every loop takes a token or leaves; blocks are a stack of our own, so that their depth costs no machine
//! stack; what recurses (expressions, lists in lists) has a limit; nothing is allocated from a number in the text.

mod body;
mod declarations;
mod expr;
mod initializer;
mod intern;
mod lexer;
mod module;
mod names;
mod operands;
mod plain;
mod scope;
mod section;
mod word;

use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::special::Special;
use crate::tree::{Module, Target};
use crate::{MAX_DIAGNOSTICS, Parse};
use declarations::VariableRange;
use hashbrown::HashMap;
use intern::Interner;
use lexer::{Kind, Lexer, Token};
pub(crate) use module::nearest_directive;
use names::{Bound, Names};
use operands::Slot;
use scope::{Frame, Waiting};

/// Searching for the nearest spelling takes time in proportion to the number of names.
const MAX_SUGGESTIONS: u32 = 50;

struct Parser<'a> {
    source: &'a str,
    lexer: Lexer<'a>,
    /// The token that is looked at.
    token: Token,
    /// The span of the token before it.
    previous: Span,
    module: Module<'a>,
    names: Names<'a>,
    opcodes: Interner<'a>,
    frame: Frame<'a>,
    /// Braces of operands that are open; recovery must not take them for the end of a block.
    open_lists: u32,
    /// Ranges of variables, those of functions by their function.
    variable_ranges: Vec<VariableRange<'a>>,
    /// By the index of the range and the name.
    made_variables: HashMap<(usize, &'a str), Target>,
    /// Uses of names that functions left open, by the function.
    open_uses: Vec<(u32, Waiting)>,
    suggestions: u32,
    diagnostics: Vec<Diagnostic>,
    suppressed: usize,
}

/// Reads a PTX text. See the crate's documentation for what the result means.
pub fn parse(source: &str) -> Parse<'_> {
    parse_for(source, 32)
}

/// The same for warps of another size, which `WARP_SZ` tells.
pub fn parse_for(source: &str, warp_size: u32) -> Parse<'_> {
    if u32::try_from(source.len()).is_err() {
        let error = Diagnostic::error(Span::default(), "texts of 4 GiB or more are not supported");
        return Parse { module: Module::default(), diagnostics: vec![error], suppressed: 0 };
    }
    let mut parser = Parser {
        source,
        lexer: Lexer::new(source),
        token: Token { kind: Kind::Eof, span: Span::default() },
        previous: Span::default(),
        module: Module { source, warp_size, ..Module::default() },
        // Real texts have a new name for every few hundred bytes.
        names: Names::with_capacity(source.len() / 512 + 64),
        opcodes: Interner::with_capacity(64),
        frame: Frame::default(),
        open_lists: 0,
        variable_ranges: Vec::new(),
        made_variables: HashMap::new(),
        open_uses: Vec::new(),
        suggestions: MAX_SUGGESTIONS,
        diagnostics: Vec::new(),
        suppressed: 0,
    };
    for &(name, special) in Special::names() {
        let id = parser.names.id(name);
        parser.names.bind_global(id, Bound::Special(special));
    }
    parser.token = parser.lexer.next();
    parser.module();
    if let Some(start) = parser.lexer.open_comment {
        parser.report(Diagnostic::error(Span::new(start, start + 2), "this comment is never closed"));
    }
    parser.settle();
    parser.diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.span.end));
    Parse { module: parser.module, diagnostics: parser.diagnostics, suppressed: parser.suppressed }
}

impl<'a> Parser<'a> {
    /// Takes the token that is looked at.
    fn bump(&mut self) -> Token {
        let token = self.token;
        self.previous = token.span;
        self.token = self.lexer.next();
        token
    }

    /// Looks at an earlier token again.
    fn rewind(&mut self, token: Token) {
        self.token = token;
        self.lexer.seek(token.span.end);
    }

    fn text(&self) -> &'a str {
        self.token.span.text(self.source)
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let is = self.token.kind == kind;
        if is {
            self.bump();
        }
        is
    }

    /// Takes a token of this kind, or reports what stands there instead.
    fn expect(&mut self, kind: Kind, name: &str) -> Option<Token> {
        if self.token.kind == kind {
            return Some(self.bump());
        }
        self.unexpected(name);
        None
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
        } else {
            self.suppressed += 1;
        }
    }

    /// After an error: to behind the next semicolon, or before a brace or a line that begins something new.
    fn recover(&mut self) {
        let line_end = self.lexer.line_end(self.previous.end);
        let mut open = std::mem::take(&mut self.open_lists);
        loop {
            match self.token.kind {
                Kind::Semi => {
                    self.bump();
                    return;
                }
                Kind::Eof => return,
                Kind::RBrace if open > 0 && self.token.span.start < line_end => open -= 1,
                Kind::LBrace if self.token.span.start < line_end => open += 1,
                Kind::LBrace | Kind::RBrace => return,
                Kind::Dotted if self.begins_line() && starts_item(self.text()) => return,
                _ => {}
            }
            self.bump();
        }
    }

    /// The end of a statement. A missing semicolon before a new line is reported and taken as if it stood there.
    fn end_of_statement(&mut self) {
        self.open_lists = 0;
        if self.eat(Kind::Semi) {
            return;
        }
        self.unexpected("`;`");
        let starts = matches!(self.token.kind, Kind::Ident | Kind::At | Kind::Dotted | Kind::RBrace | Kind::Eof);
        if !(starts && (self.begins_line() || self.token.kind == Kind::RBrace)) {
            self.recover();
        }
    }

    /// Whether the token that is looked at stands on a later line than the one before it.
    fn begins_line(&self) -> bool {
        let between = self.previous.end as usize..self.token.span.start as usize;
        self.source.get(between).is_some_and(|between| between.contains('\n'))
    }

    /// Names that functions used before their declaration, and those that nothing declares.
    fn settle(&mut self) {
        self.variable_ranges.append(&mut self.frame.variable_ranges);
        for (function, use_) in std::mem::take(&mut self.open_uses) {
            if let Bound::Target(target) = self.names.binding(use_.name).bound {
                if matches!(use_.slot, Slot::Table(..))
                    && (use_.what == "function") != matches!(target, Target::Function(_))
                {
                    let text = self.names.interner.name(use_.name);
                    self.report(Diagnostic::error(use_.span, format!("`{text}` is no {}", use_.what)));
                }
                if let Some(body) = self.module.functions[function as usize].body.as_mut() {
                    use_.slot.set(body, target);
                }
                continue;
            }
            let text = self.names.interner.name(use_.name);
            if let Some(target) = self.variable_of_range(function, text, use_.span) {
                if let Some(body) = self.module.functions[function as usize].body.as_mut() {
                    use_.slot.set(body, target);
                }
                continue;
            }
            let mut error = Diagnostic::error(use_.span, format!("{} `{text}` is not declared", use_.what));
            let near = self.near_in(function, text).or_else(|| match use_.what {
                "label" => None,
                "function" => self.suggest(text, |bound| matches!(bound, Bound::Target(Target::Function(_)))),
                _ => self.suggest(text, |bound| matches!(bound, Bound::Target(_))),
            });
            if let Some(near) = near {
                error = error.note(format!("did you mean `{near}`?"));
            }
            self.report(error);
        }
        self.settle_initializers();
        for alias in &mut self.module.aliases {
            alias.function =
                self.names.interner.find(alias.target).and_then(|name| match self.names.binding(name).bound {
                    Bound::Target(Target::Function(function)) => Some(function),
                    _ => None,
                });
        }
        let nameless: Vec<_> = self
            .module
            .aliases
            .iter()
            .filter(|alias| {
                let bound = self.names.interner.find(alias.name).map(|name| self.names.binding(name).bound);
                !matches!(bound, Some(Bound::Target(Target::Function(_))))
            })
            .cloned()
            .collect();
        for alias in nameless {
            let message = format!("`{}` is not declared as a function", alias.name);
            self.report(Diagnostic::error(alias.span, message));
        }
        let missing: Vec<_> = self.module.aliases.iter().filter(|alias| alias.function.is_none()).cloned().collect();
        for alias in missing {
            let message = format!("function `{}` is not declared", alias.target);
            self.report(Diagnostic::error(alias.span, message));
        }
    }
}

impl<'a> Parser<'a> {
    /// The nearest name among the labels, variables and parameters of a function.
    fn near_in(&mut self, function: u32, text: &str) -> Option<&'a str> {
        if self.suggestions == 0 {
            return None;
        }
        self.suggestions -= 1;
        let function = &self.module.functions[function as usize];
        let body = function.body.as_ref()?;
        let variables = function.params.iter().chain(&function.returns).chain(&body.variables).map(|it| it.name);
        let names = body.labels.iter().map(|it| it.name).chain(body.tables.iter().map(|it| it.name)).chain(variables);
        crate::suggest::nearest(text, names.take(100_000))
    }
}

/// Whether a directive begins something at the top of the module.
fn starts_item(text: &str) -> bool {
    matches!(
        text,
        ".entry"
            | ".func"
            | ".visible"
            | ".extern"
            | ".weak"
            | ".common"
            | ".version"
            | ".target"
            | ".address_size"
            | ".section"
            | ".alias"
    )
}
