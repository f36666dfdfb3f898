public import Waku

extension P2PRelay: StoreReadingRelay {
    /// Reads a page from any peer with a store that answers. The next page may come from another peer, since cursors are message hashes.
    ///
    /// - Throws: `RelayError`: `refused` when no peer has a store, `unavailable` when none answers.
    public func storePage(_ query: StoreQuery) async throws(RelayError) -> StorePage {
        do throws(StoreError) {
            return try await self.query(query)
        } catch {
            switch error {
            case .noStore: throw RelayError(code: .refused, message: "no peer has a store")
            case .failed(let text, _): throw RelayError(code: .unavailable, message: text)
            }
        }
    }
}
