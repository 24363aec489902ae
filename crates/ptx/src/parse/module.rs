//! What stands outside of functions, and the heads of functions.

use super::Parser;
use super::lexer::Kind;
use super::names::Bound;
use super::operands::shorten;
use super::scope::Frame;
use super::starts_item;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::tree::*;

impl<'a> Parser<'a> {
    /// The whole text.
    pub(super) fn module(&mut self) {
        loop {
            match self.token.kind {
                Kind::Eof => return,
                Kind::Semi => {
                    self.bump();
                }
                Kind::Dotted => self.item(),
                Kind::At => self.line_directive(),
                Kind::LBrace => {
                    self.report(Diagnostic::error(self.token.span, "a block outside of a function"));
                    self.skip_block();
                }
                Kind::RBrace => {
                    self.report(Diagnostic::error(self.token.span, "this `}` closes nothing"));
                    self.bump();
                }
                _ => {
                    self.unexpected_start("a directive");
                    self.recover();
                }
            }
        }
    }

    fn item(&mut self) {
        let start = self.token.span;
        match self.text() {
            ".version" => {
                self.bump();
                self.version();
            }
            ".target" => {
                self.bump();
                loop {
                    let Some(name) = self.expect(Kind::Ident, "the name of a target") else { return self.skip_line() };
                    self.module.targets.push(name.span.text(self.source));
                    if !self.eat(Kind::Comma) {
                        break;
                    }
                }
                self.eat(Kind::Semi);
            }
            ".address_size" => {
                self.bump();
                let at = self.token.span;
                let Some(size) = self.plain_number() else { return self.skip_line() };
                if size != 32 && size != 64 {
                    self.report(Diagnostic::error(at, format!("the address size is 32 or 64, not {size}")));
                }
                if self.module.address_size.replace(size).is_some() {
                    self.report(Diagnostic::error(at, "a second `.address_size`"));
                }
                self.eat(Kind::Semi);
            }
            ".file" => self.file(),
            ".section" => {
                self.bump();
                self.section();
            }
            ".pragma" => {
                self.bump();
                match self.strings() {
                    Some(texts) => {
                        self.module.pragmas.extend(texts);
                        self.end_of_statement();
                    }
                    None => self.recover(),
                }
            }
            ".alias" => {
                self.bump();
                self.alias(start);
            }
            ".visible" | ".extern" | ".weak" | ".common" | ".entry" | ".func" => self.linked(),
            ".global" | ".const" | ".shared" | ".local" | ".param" | ".reg" | ".tex" | ".align" | ".attribute" => {
                self.linked();
            }
            ".loc" => self.skip_line(),
            _ => {
                let directive = self.unknown_directive();
                self.module.items.push(Item::Directive(self.module.directives.len() as u32));
                self.module.directives.push(directive);
            }
        }
    }

    /// Functions and variables, from their linkage on.
    fn linked(&mut self) {
        let start = self.token.span;
        let mut linkage = Linkage::Internal;
        let mut attributes = Vec::new();
        let mut given: Option<Span> = None;
        loop {
            let word = self.token.span;
            if matches!(self.text(), ".visible" | ".extern" | ".weak" | ".common")
                && let Some(first) = given.replace(word)
            {
                let text = self.text();
                let error = Diagnostic::error(word, format!("`{text}` behind another directive of its kind"));
                self.report(error.at(first, "the first one"));
            }
            linkage = match self.text() {
                ".visible" => Linkage::Visible,
                ".extern" => Linkage::Extern,
                ".weak" => Linkage::Weak,
                ".common" => Linkage::Common,
                ".entry" | ".func" => {
                    let kind = if self.text() == ".entry" { FunctionKind::Entry } else { FunctionKind::Func };
                    self.bump();
                    return self.function(start, kind, linkage, attributes);
                }
                ".attribute" => {
                    self.bump();
                    let Some(more) = self.attributes() else { return self.recover() };
                    attributes.extend(more);
                    continue;
                }
                _ => break,
            };
            self.bump();
        }
        if self.token.kind != Kind::Dotted {
            self.unexpected("`.entry`, `.func` or a state space");
            return self.recover();
        }
        let done = self.head().and_then(|mut head| {
            head.attributes.extend(attributes);
            if head.space == Some(Space::Reg) {
                self.report(Diagnostic::error(head.span, "registers are declared in functions"));
                return None;
            }
            if head.space == Some(Space::Param) {
                self.report(Diagnostic::error(head.span, "parameters are declared with their function"));
                return None;
            }
            self.variables(&head, linkage)
        });
        match done {
            Some(()) => self.end_of_statement(),
            None => self.recover_declaration(),
        }
    }

    /// Initial values span lines and braces: an error in one costs the declaration.
    fn recover_declaration(&mut self) {
        self.open_lists = 0;
        loop {
            match self.token.kind {
                Kind::Semi => {
                    self.bump();
                    return;
                }
                Kind::Eof => return,
                Kind::Dotted if self.begins_line() => return,
                _ => {
                    self.bump();
                }
            }
        }
    }

    fn version(&mut self) {
        let token = self.token;
        let text = self.text();
        let parts = text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        match parts {
            Some((major, minor)) if token.kind == Kind::Float => {
                self.bump();
                if self.module.version.is_some() {
                    self.report(Diagnostic::error(token.span, "a second `.version`"));
                }
                self.module.version = Some(Version { major, minor });
                self.eat(Kind::Semi);
            }
            _ => {
                self.unexpected("a version such as `8.6`");
                self.skip_line();
            }
        }
    }

    /// `.file 1 "a.cu", 1700000000, 1234`
    pub(super) fn file(&mut self) {
        let start = self.bump().span;
        let mut read = || {
            let index = self.plain_number()?;
            let path = self.string()?;
            let mut numbers = [None; 2];
            for number in &mut numbers {
                if self.eat(Kind::Comma) {
                    let token = self.expect(Kind::Integer, "a number")?;
                    *number = Some(self.literal(token)?.integer()?);
                }
            }
            let [timestamp, size] = numbers;
            Some(File { index, path, timestamp, size, span: start.to(self.previous) })
        };
        match read() {
            Some(file) => {
                if self.module.files.len() < 1_000 && self.module.file(file.index).is_some() {
                    let message = format!("there is another file with the number {}", file.index);
                    self.report(Diagnostic::warning(file.span, message));
                }
                self.module.files.push(file);
                self.eat(Kind::Semi);
            }
            None => self.skip_line(),
        }
    }

    /// The text between quotation marks.
    fn string(&mut self) -> Option<&'a str> {
        let token = self.expect(Kind::String, "a text in quotation marks")?;
        let text = token.span.text(self.source);
        let inner = text[1..].strip_suffix('"');
        if inner.is_none() {
            self.report(Diagnostic::error(token.span, "this text has no closing quotation mark on its line"));
        }
        inner
    }

    /// `"a", "b"`
    pub(super) fn strings(&mut self) -> Option<Vec<&'a str>> {
        let mut texts = vec![self.string()?];
        while self.eat(Kind::Comma) {
            texts.push(self.string()?);
        }
        Some(texts)
    }

    fn alias(&mut self, start: Span) {
        let mut read = || {
            let name = self.expect(Kind::Ident, "a name")?.span.text(self.source);
            self.expect(Kind::Comma, "`,`")?;
            let target = self.expect(Kind::Ident, "the name of a function")?.span.text(self.source);
            Some((name, target))
        };
        let Some((name, target)) = read() else { return self.recover() };
        let span = start.to(self.previous);
        self.module.items.push(Item::Alias(self.module.aliases.len() as u32));
        self.module.aliases.push(Alias { name, target, function: None, span });
        self.end_of_statement();
    }

    fn function(&mut self, start: Span, kind: FunctionKind, linkage: Linkage, mut attributes: Vec<Attribute<'a>>) {
        while self.token.kind == Kind::Dotted && self.text() == ".attribute" {
            self.bump();
            match self.attributes() {
                Some(more) => attributes.extend(more),
                None => return self.skip_head(),
            }
        }
        let returns = if self.eat(Kind::LParen) { self.parameters_or_skip() } else { Vec::new() };
        if kind == FunctionKind::Entry && !returns.is_empty() {
            let span = returns[0].span;
            self.report(Diagnostic::error(span, "a kernel returns nothing"));
        }
        let Some(name) = self.expect(Kind::Ident, "the name of a function") else {
            self.skip_head();
            if self.token.kind == Kind::LBrace {
                self.skip_block();
            }
            return;
        };
        let text = name.span.text(self.source);
        let params = if self.eat(Kind::LParen) { self.parameters_or_skip() } else { Vec::new() };
        let (mut tuning, mut directives) = (Tuning::default(), Vec::new());
        self.tuning(&mut tuning, &mut directives);
        if !matches!(self.token.kind, Kind::LBrace | Kind::Semi) {
            self.unexpected("`{` or `;`");
            if !(self.begins_line() && self.token.kind == Kind::Dotted) {
                self.skip_head();
            }
        }
        let defined = self.token.kind == Kind::LBrace;
        let span = start.to(self.previous);
        self.check_head(kind, name.span, &returns, &params, &tuning);
        let function = Function {
            name: text,
            name_span: name.span,
            kind,
            linkage,
            attributes,
            returns,
            params,
            tuning,
            directives,
            body: None,
            span,
        };
        let id = self.declare_function(function, defined);
        self.module.items.push(Item::Function(id));
        if !defined {
            self.eat(Kind::Semi);
            return;
        }
        self.define(id, text);
    }

    /// What a head says that its kind of function cannot have.
    fn check_head(
        &mut self,
        kind: FunctionKind,
        name: Span,
        returns: &[Variable<'a>],
        params: &[Variable<'a>],
        tuning: &Tuning,
    ) {
        let entry = kind == FunctionKind::Entry;
        let last = params.len().saturating_sub(1);
        for (at, it) in params.iter().enumerate().chain(returns.iter().map(|it| (usize::MAX, it))) {
            if entry && it.space != Space::Param {
                self.report(Diagnostic::error(it.span, "parameters of a kernel lie in `.param`"));
            } else if !matches!(it.space, Space::Param | Space::Reg) {
                self.report(Diagnostic::error(it.span, "parameters of a function lie in `.param` or `.reg`"));
            } else if it.name.is_empty() || (!entry && it.name == "_") {
                self.report(Diagnostic::error(it.span, "a parameter has a name"));
            } else if it.dims.contains(&None) && (entry || at != last) {
                self.report(Diagnostic::error(it.span, "only the last parameter of a function can have an open size"));
            }
        }
        let shapes = [("maxntid", tuning.maxntid), ("reqntid", tuning.reqntid)];
        let numbers = [("minnctapersm", tuning.minnctapersm), ("maxnreg", tuning.maxnreg)];
        let given = shapes.iter().filter_map(|(name, shape)| Some((*name, (*shape)?.contains(&0))));
        let given = given.chain(numbers.iter().filter_map(|(name, number)| Some((*name, (*number)? == 0))));
        for (directive, zero) in given {
            if !entry {
                self.report(Diagnostic::error(name, format!("`.{directive}` is for kernels")));
            } else if zero {
                self.report(Diagnostic::error(name, format!("`.{directive}` takes numbers that are not zero")));
            }
        }
        if entry && tuning.maxntid.is_some() && tuning.reqntid.is_some() {
            self.report(Diagnostic::error(name, "a kernel has `.maxntid` or `.reqntid`, not both"));
        }
        if entry && tuning.noreturn {
            self.report(Diagnostic::error(name, "`.noreturn` is for functions: kernels have no caller"));
        }
    }

    /// The body of a function whose head is read.
    fn define(&mut self, id: FunctionId, name: &'a str) {
        // What lies there was declared outside of functions.
        self.variable_ranges.append(&mut self.frame.variable_ranges);
        self.open_scope(self.token.span, false);
        self.bind_parameters(id);
        self.body(name);
        self.close_scope(self.previous);
        let waiting = self.leave();
        let Frame { body, variable_ranges, .. } = &mut self.frame;
        for mut range in variable_ranges.drain(..) {
            let block = body.blocks.iter().find(|block| block.span.start == range.block.start);
            (range.function, range.block) = (Some(id), block.map_or(body.span, |block| block.span));
            self.variable_ranges.push(range);
        }
        self.open_uses.extend(waiting.into_iter().map(|use_| (id.0, use_)));
        let body = self.frame.finish();
        let function = &mut self.module.functions[id.index()];
        function.span = function.span.to(self.previous);
        function.body = Some(body);
    }

    /// The function's id: one for each name, but for definitions that are there twice.
    fn declare_function(&mut self, function: Function<'a>, defined: bool) -> FunctionId {
        let name = self.names.id(function.name);
        let bound = self.names.binding(name).bound;
        let new = FunctionId(self.module.functions.len() as u32);
        match bound {
            Bound::Target(Target::Function(id)) => {
                self.check_again(&function, id);
                let old = &mut self.module.functions[id.index()];
                let again = old.body.is_some();
                if !(again && defined) {
                    if defined || (!again && old.linkage == Linkage::Extern) {
                        *old = function;
                    }
                    return id;
                }
                let first = old.name_span;
                self.duplicate(name, function.name_span, Some(first));
            }
            Bound::Nothing => self.names.bind_global(name, Bound::Target(Target::Function(new))),
            other => {
                let first = self.place_of(other);
                self.duplicate(name, function.name_span, first);
            }
        }
        self.module.functions.push(function);
        new
    }

    /// A second declaration must agree with the first.
    fn check_again(&mut self, function: &Function<'a>, id: FunctionId) {
        let old = &self.module.functions[id.index()];
        let same = |a: &[Variable<'a>], b: &[Variable<'a>]| {
            let kind = |it: &Variable<'a>| (it.space, it.ty, it.vector, it.dims.clone(), it.alignment());
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| kind(a) == kind(b))
        };
        let message = if old.kind != function.kind {
            "is declared as a kernel and as a function"
        } else if !(same(&old.params, &function.params) && same(&old.returns, &function.returns)) {
            "is declared with other parameters"
        } else {
            return;
        };
        let error = Diagnostic::error(function.name_span, format!("`{}` {message}", function.name));
        let error = error.at(old.name_span, "first declared here");
        self.report(error);
    }

    fn bind_parameters(&mut self, id: FunctionId) {
        let function = &mut self.module.functions[id.index()];
        let (mut returns, mut params) = (std::mem::take(&mut function.returns), std::mem::take(&mut function.params));
        for (list, is_return) in [(&mut returns, true), (&mut params, false)] {
            for (index, variable) in list.iter_mut().enumerate() {
                if matches!(variable.name, "" | "_") {
                    continue;
                }
                let name = self.names.id(variable.name);
                if variable.space == Space::Reg {
                    self.declare_register(name, variable.ty, variable.vector, variable.span);
                    if let Bound::Register(register) = self.look_up(name) {
                        variable.register = Some(register);
                    }
                } else {
                    let index = index as u32;
                    let target = if is_return { Target::Return(index) } else { Target::Parameter(index) };
                    self.bind(name, Bound::Target(target), variable.span);
                }
            }
        }
        let function = &mut self.module.functions[id.index()];
        (function.returns, function.params) = (returns, params);
    }

    /// Parameters; an error in them must not cost the body.
    fn parameters_or_skip(&mut self) -> Vec<Variable<'a>> {
        if let Some(params) = self.parameters() {
            return params;
        }
        while !matches!(self.token.kind, Kind::RParen | Kind::LBrace | Kind::Semi | Kind::Eof) && !self.at_item() {
            self.bump();
        }
        self.eat(Kind::RParen);
        Vec::new()
    }

    fn at_item(&self) -> bool {
        self.token.kind == Kind::Dotted && starts_item(self.text()) && self.begins_line()
    }

    /// To the body, the semicolon or whatever begins next.
    fn skip_head(&mut self) {
        while !matches!(self.token.kind, Kind::LBrace | Kind::RBrace | Kind::Semi | Kind::Eof) && !self.at_item() {
            self.bump();
        }
    }

    /// From an opening brace to behind the one that closes it.
    fn skip_block(&mut self) {
        let mut open = 0usize;
        loop {
            match self.token.kind {
                Kind::LBrace => open += 1,
                Kind::RBrace => open = open.saturating_sub(1),
                Kind::Eof => return,
                _ => {}
            }
            self.bump();
            if open == 0 {
                return;
            }
        }
    }

    /// To the next line.
    pub(super) fn skip_line(&mut self) {
        let here = self.token.kind == Kind::Dotted && self.text() == ".loc";
        if here {
            self.bump();
        }
        while self.token.kind != Kind::Eof && !self.begins_line() {
            self.bump();
        }
    }

    /// Directives between the parameters and the body.
    pub(super) fn tuning(&mut self, tuning: &mut Tuning, unknown: &mut Vec<Directive<'a>>) {
        while self.token.kind == Kind::Dotted && !self.at_item() {
            let start = self.token;
            let done = self.one_tuning(tuning, unknown);
            if done.is_none() {
                while !matches!(self.token.kind, Kind::Dotted | Kind::LBrace | Kind::Semi | Kind::Eof) {
                    self.bump();
                }
                // An error always leaves its directive.
                if self.token.span.start == start.span.start {
                    self.bump();
                }
            }
        }
    }

    fn one_tuning(&mut self, tuning: &mut Tuning, unknown: &mut Vec<Directive<'a>>) -> Option<()> {
        let token = self.bump();
        let name = token.span.text(self.source);
        match name {
            ".noreturn" => tuning.noreturn = true,
            ".explicitcluster" => tuning.explicitcluster = true,
            ".blocksareclusters" => tuning.blocksareclusters = true,
            ".maxntid" => tuning.maxntid = Some(self.triple()?),
            ".reqntid" => tuning.reqntid = Some(self.triple()?),
            ".reqnctapercluster" => tuning.reqnctapercluster = Some(self.triple()?),
            ".minnctapersm" => tuning.minnctapersm = Some(self.number32()?),
            ".maxnctapersm" => tuning.maxnctapersm = Some(self.number32()?),
            ".maxnreg" => tuning.maxnreg = Some(self.number32()?),
            ".maxclusterrank" => tuning.maxclusterrank = Some(self.number32()?),
            ".local_maxnreg" => tuning.local_maxnreg = Some(self.number32()?),
            ".abi_preserve" => tuning.abi_preserve = Some(self.number32()?),
            ".abi_preserve_control" => tuning.abi_preserve_control = Some(self.number32()?),
            _ => {
                if name == ".pragma" {
                    self.strings()?;
                    // The semicolon belongs to the pragma only where the function goes on behind it.
                    let mut ahead = self.lexer.clone();
                    if self.token.kind == Kind::Semi && matches!(ahead.next().kind, Kind::LBrace) {
                        self.bump();
                    }
                } else {
                    self.unknown_warning(token.span);
                    while !matches!(
                        self.token.kind,
                        Kind::Dotted | Kind::LBrace | Kind::RBrace | Kind::Semi | Kind::Eof
                    ) {
                        self.bump();
                    }
                }
                let span = token.span.to(self.previous);
                unknown.push(Directive { name, text: span.text(self.source), span, position: 0 });
            }
        }
        Some(())
    }

    /// `128, 1, 1`; what is missing is 1.
    fn triple(&mut self) -> Option<[u32; 3]> {
        let mut values = [1; 3];
        values[0] = self.number32()?;
        for value in &mut values[1..] {
            if self.eat(Kind::Comma) {
                *value = self.number32()?;
            }
        }
        Some(values)
    }

    fn unknown_warning(&mut self, span: Span) {
        let name = span.text(self.source);
        if name.as_bytes().get(1).is_some_and(u8::is_ascii_digit) {
            return self.report(Diagnostic::error(span, format!("`{}` is no directive", shorten(name))));
        }
        let mut warning = Diagnostic::warning(span, format!("unknown directive `{}`", shorten(name)));
        if let Some(near) = nearest_directive(name) {
            warning = warning.note(format!("did you mean `{near}`?"));
        }
        self.report(warning);
    }

    /// A directive that is not known: kept as text up to its semicolon, a closing brace or the end of its line.
    pub(super) fn unknown_directive(&mut self) -> Directive<'a> {
        let token = self.bump();
        self.unknown_warning(token.span);
        let mut open = 0usize;
        while self.token.kind != Kind::Eof && !self.begins_line() {
            match self.token.kind {
                Kind::LBrace => open += 1,
                Kind::RBrace if open == 0 => break,
                Kind::RBrace => open -= 1,
                Kind::Semi if open == 0 => break,
                _ => {}
            }
            self.bump();
        }
        self.eat(Kind::Semi);
        let span = token.span.to(self.previous);
        let position = self.frame.position();
        Directive { name: token.span.text(self.source), text: span.text(self.source), span, position }
    }

    /// `@@DWARF ...` of old compilers: a line kept as text.
    pub(super) fn line_directive(&mut self) {
        let start = self.token.span;
        let end = self.lexer.line_end(start.start);
        let span = Span::new(start.start, end);
        let text = span.text(self.source);
        if !text.starts_with("@@") {
            self.unexpected("a directive");
        }
        self.lexer.seek(end);
        self.previous = span;
        self.token = self.lexer.next();
        let directive = Directive { name: "@@", text, span, position: self.frame.position() };
        if self.frame.depth() > 0 {
            self.frame.body.directives.push(directive);
        } else {
            self.module.items.push(Item::Directive(self.module.directives.len() as u32));
            self.module.directives.push(directive);
        }
    }
}

/// The known directive with the nearest spelling.
pub(crate) fn nearest_directive(name: &str) -> Option<&'static str> {
    crate::suggest::nearest(name, DIRECTIVES.iter().copied())
}

const DIRECTIVES: &[&str] = &[
    ".version",
    ".target",
    ".address_size",
    ".visible",
    ".extern",
    ".weak",
    ".common",
    ".entry",
    ".func",
    ".alias",
    ".pragma",
    ".loc",
    ".file",
    ".section",
    ".reg",
    ".param",
    ".local",
    ".shared",
    ".global",
    ".const",
    ".align",
    ".maxntid",
    ".reqntid",
    ".minnctapersm",
    ".maxnctapersm",
    ".maxnreg",
    ".noreturn",
    ".explicitcluster",
    ".reqnctapercluster",
    ".maxclusterrank",
    ".blocksareclusters",
    ".branchtargets",
    ".calltargets",
    ".callprototype",
    ".attribute",
    ".local_maxnreg",
    ".abi_preserve",
    ".abi_preserve_control",
];
