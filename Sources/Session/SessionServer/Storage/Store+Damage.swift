import Storage

extension Store {
    /// Reads elements together, and in halves where that fails because of damage: a damaged page hides its own rows only.
    ///
    /// - Parameters:
    ///   - limit: the number of unreadable parts after which none is divided further: very many row ids may belong to one page.
    ///   - read: reads elements. If it throws, nothing of them counts as read.
    /// - Returns: the parts that can't be read, with their errors.
    /// - Throws: errors of the store other than damage.
    func readAroundDamage<Elements: RandomAccessCollection>(
        in elements: Elements, limit: Int = 1000, _ read: (Elements) async throws(StoreError) -> Void
    ) async throws(StoreError) -> [(part: Elements, error: StoreError)] where Elements.SubSequence == Elements {
        var unreadable: [(part: Elements, error: StoreError)] = []
        var rest = [elements]
        while let part = rest.popLast() {
            do throws(StoreError) {
                try await read(part)
            } catch {
                guard error.code == .damaged else { throw error }
                if part.count > 1, unreadable.count < limit, !Task.isCancelled {
                    let middle = part.index(part.startIndex, offsetBy: part.count / 2)
                    rest += [part[middle...], part[..<middle]]
                } else {
                    unreadable.append((part, error))
                }
            }
        }
        return unreadable
    }
}
