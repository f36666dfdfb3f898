import Synchronization

/// A statement in an engine's language, made once for each engine that a process has.
package final class StatementText: Sendable {
    private let texts = Mutex<[(engine: ObjectIdentifier, text: String)]>([])

    /// - Parameters:
    ///   - engine: the type of the store.
    ///   - make: makes the statement, the first time.
    package func value(for engine: any Store.Type, _ make: () -> String) -> String {
        let engine = ObjectIdentifier(engine)
        return texts.withLock { texts in
            if texts.count > 0, texts[0].engine == engine { return texts[0].text }
            if let found = texts.first(where: { $0.engine == engine }) { return found.text }
            let text = make()
            texts.append((engine, text))
            return text
        }
    }
}
