public import Waku

extension P2PRelay: StoreReadingRelay {
    /// A page from any peer with a store that answers.
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
