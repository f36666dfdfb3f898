import Synchronization

/// A statement's SQL text, generated once for each engine that the process uses.
package final class StatementText: Sendable {
    private final class Text: Sendable {
        let engine: ObjectIdentifier
        let text: String

        init(_ engine: ObjectIdentifier, _ text: String) {
            (self.engine, self.text) = (engine, text)
        }
    }

    /// The text of the first engine, usually the only one. Read without a lock, which the writer and the readers would contend for.
    private let first = AtomicLazyReference<Text>()
    private let others = Mutex<[Text]>([])

    /// - Parameters:
    ///   - make: generates the statement at the first call.
    package func value(for engine: any Store.Type, _ make: () -> String) -> String {
        let engine = ObjectIdentifier(engine)
        let first = first.load() ?? first.storeIfNil(Text(engine, make()))
        if first.engine == engine { return first.text }
        return others.withLock { others in
            if let found = others.first(where: { $0.engine == engine }) { return found.text }
            let text = make()
            others.append(Text(engine, text))
            return text
        }
    }
}
