package import Storage

extension StoreCommand {
    /// The same command, after it was decided once on the store's rows: the store decides on a command again if rows have changed meanwhile, or if others
    /// of its transaction failed.
    package func decidedOnce(in store: any Store) throws -> StoreCommand {
        var command = self
        while case .read(let reads, let next) = command {
            command = try next(try store.read(StoreCommand<[[Row]]>.read(reads) { .done($0) }))
        }
        return self
    }
}
